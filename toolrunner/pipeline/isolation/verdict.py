"""What the end of a worker means, from its answer and from its process. Pure.

An answer says how the body ended, and stays true whatever became of the process afterwards. Without one there are only the facts
of the process. In both cases a stop of ours that came first is the cause, as it is for every process.
"""

from dataclasses import replace

from toolrunner.pipeline.ends import BodyEnd
from toolrunner.pipeline.exits import output_content
from toolrunner.pipeline.isolation.messages import Answer
from toolrunner.process import EndCause, ProcessEnd
from toolrunner.results import Code, Ended, Error, ErrorKind
from toolrunner.tools import AnyTool, InvalidOutput, Reply


def timed_out(end: ProcessEnd, answer: Answer | None) -> bool:
    """Whether the keeper's clock stopped the body, and not only a process that was slow to leave after its answer."""
    return end.cause is EndCause.TIMED_OUT and (answer is None or answer.told)


def worker_end(tool: AnyTool, end: ProcessEnd, answer: Answer | None, breach: str | None) -> BodyEnd:
    """How the body ended, as the pipeline tells it."""
    told = _without_answer(end, breach) if answer is None else _answered(tool, end, answer)
    by_clock = timed_out(end, answer)
    return replace(
        told, timed_out=by_clock, process=end.facts, still_running=end.still_running, missing=end.missing, sandbox=end.sandbox
    )


def _answered(tool: AnyTool, end: ProcessEnd, answer: Answer) -> BodyEnd:
    if answer.ended is Ended.RETURNED:
        return _returned(tool, answer)
    stopped = answer.told and bool(end.signals)
    if answer.ended is Ended.STOPPED and not stopped:
        text = "the worker process got a SIGTERM that toolrunner did not send, and its body ended by it"
        return BodyEnd(Ended.RAISED, error=Error(ErrorKind.KILLED_BY_SIGNAL, text), code=Code.TOOL_ERROR, saw_abort=True)
    if stopped:
        # An error after our signal may be its echo: a command of the body's that got the same SIGTERM, say. It is kept, and the
        # stop is the cause.
        return BodyEnd(Ended.STOPPED, error=answer.error, saw_abort=True)
    return BodyEnd(Ended.RAISED, error=answer.error, code=Code.TOOL_ERROR, saw_abort=answer.saw_abort)


def _returned(tool: AnyTool, answer: Answer) -> BodyEnd:
    if answer.code is Code.INVALID_OUTPUT:
        return BodyEnd(Ended.RETURNED, error=answer.error, code=Code.INVALID_OUTPUT, saw_abort=answer.saw_abort)
    try:
        # Checked again: what came through the channel is not trusted to be what can be written.
        reply = tool.dump(Reply(answer.value, answer.content, answer.follow_up, answer.reply_error))
    except InvalidOutput as error:
        wrong = Error(ErrorKind.INVALID_OUTPUT, error.message)
        return BodyEnd(Ended.RETURNED, error=wrong, code=Code.INVALID_OUTPUT, saw_abort=answer.saw_abort)
    code = Code.TOOL_ERROR if reply.error is not None else None
    return BodyEnd(Ended.RETURNED, reply, reply.error, code, saw_abort=answer.saw_abort)


def _without_answer(end: ProcessEnd, breach: str | None) -> BodyEnd:
    facts = end.facts
    said = Reply(content=output_content(facts))
    if end.cause is EndCause.KEEPER_LOST:
        error = Error(ErrorKind.KEEPER_LOST, "the supervisor of the worker process was lost")
        return BodyEnd(Ended.LOST, said, error, Code.KEEPER_LOST, saw_abort=bool(end.signals))
    if breach is not None:
        error = Error(ErrorKind.EXCEPTION, f"the worker process was ended, because it could not be understood any more: {breach}")
        return BodyEnd(Ended.LOST, said, error, Code.LOST, saw_abort=bool(end.signals))
    if end.cause in (EndCause.STOPPED, EndCause.TIMED_OUT):
        return BodyEnd(Ended.STOPPED, said, saw_abort=bool(end.signals))
    if facts.signal is not None:
        text = f"the worker process was killed by {facts.signal}, which toolrunner did not send"
        return BodyEnd(Ended.RETURNED, said, Error(ErrorKind.KILLED_BY_SIGNAL, text), Code.KILLED_BY_SIGNAL)
    text = f"the worker process left with exit status {facts.exit_code} before the tool had returned"
    return BodyEnd(Ended.RETURNED, said, Error(ErrorKind.EXIT_STATUS, text), Code.EXIT_STATUS)
