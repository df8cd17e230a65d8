"""Logs of conversations at random, the way an engine and a runner write them."""

import random
from dataclasses import replace

from history.logs import Log, call, result, text, thought

from toolrunner.markers import InterruptReason
from toolrunner.records import Block, CallBlock, RedactedBlock, TextBlock, UnknownBlock
from toolrunner.results import ToolResult
from toolrunner.wire import Provider

FATES = ("returned", "failed", "late", "stopped", "running", "not_started")


def random_log(rng: random.Random, provider: Provider, cut_calls: str = "omit", marker: str = "user") -> Log:
    """A log as an engine writes it, with stops, failures and crashes wherever they may come. Its turns are all over."""
    log = Log(provider, cut_calls, marker)
    waiting = list[ToolResult]()
    for number in range(rng.randint(1, 4)):
        # Somebody says something before a model is asked for the first time.
        log.turn(*(f"say {rng.randint(0, 99)}" for _ in range(rng.randint(0 if number else 1, 2))))
        _random_turn(rng, log, waiting)
        for late in [one for one in waiting if rng.random() < 0.5]:
            waiting.remove(late)
            log.ended(late)
        if rng.random() < 0.3:
            log.say("the build is done", "host")
    return log


def _random_turn(rng: random.Random, log: Log, waiting: list[ToolResult]) -> None:
    for _ in range(rng.randint(0, 3)):
        match rng.choice(("stop", "crash", "error", "go", "go", "go", "go")):
            case "stop":
                log.end()
                return
            case "error":
                log.end("error", InterruptReason.HOST)
                return
            case "crash":
                log.close()
                return
        log.send()
        if not _random_step(rng, log, waiting):
            return
        if rng.random() < 0.3:
            log.say("by the way", "steer")
    log.end(*(("completed",) if rng.random() < 0.7 else ()))


def _random_step(rng: random.Random, log: Log, waiting: list[ToolResult]) -> bool:
    """One request; whether the turn goes on."""
    kind = rng.choice(("reply", "reply", "reply", "cut", "nothing", "crash"))
    if kind == "nothing":
        log.attempt(rng.choice(("cancelled", "error")))
        log.step_end()
        log.end()
        return False
    if kind == "crash":
        log.close()
        return False
    if rng.random() < 0.1:
        log.say("while it streams", "host")
    blocks = random_blocks(rng, log.provider, whole=kind == "reply")
    log.reply(*blocks, interrupted=kind == "cut")
    if kind == "cut":
        log.step_end()
        log.end()
        return False
    return _random_calls(rng, log, [block for block in blocks if isinstance(block, CallBlock)], waiting)


def _random_calls(rng: random.Random, log: Log, calls: list[CallBlock], waiting: list[ToolResult]) -> bool:
    made = set[str | None]()
    for block in calls:
        if block.call_id is not None and block.call_id in made:
            continue
        made.add(block.call_id)
        where = rng.random()
        if where < 0.08:
            log.end(*(() if rng.random() < 0.5 else ("error", InterruptReason.HOST)))
            return False
        if where < 0.16:
            if rng.random() < 0.7:
                run_id = log.recorded(block)
                if rng.random() < 0.5:
                    log.dispatched(run_id, block)
            log.close()
            return False
        fate = rng.choice(FATES)
        run_id = log.call(block, fate, "out" if rng.random() < 0.5 else "")
        if fate == "running":
            waiting.append(result(run_id, block.name, rng.choice(("late", "stopped")), block.call_id))
    log.step_end()
    return True


def _odd_call(rng: random.Random, provider: Provider, made: CallBlock) -> CallBlock:
    """Now and then a call that is harder to send back."""
    match rng.randint(0, 12):
        case 0:
            return replace(made, arguments='{"path": oops')
        case 1:
            return replace(made, name="")
        case 2 if provider in (Provider.OPENAI_CHAT, Provider.OPENAI_RESPONSES):
            return replace(made, kind="custom", arguments="free text")
        case 3 if provider is Provider.GEMINI:
            return replace(made, call_id=None)
        case _:
            return made


def _odd_blocks(rng: random.Random, provider: Provider) -> list[Block]:
    """What only its provider knows, and what is easily taken for nothing."""
    match provider:
        case Provider.ANTHROPIC:
            search = UnknownBlock({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}})
            found = UnknownBlock({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []})
            several: list[list[Block]] = [[search, found], [search], [replace(search, closed=False)]]
            return rng.choice(several)
        case Provider.GEMINI:
            return [rng.choice((TextBlock("", signature="c2ln"), TextBlock("signed", signature="c2ln")))]
        case Provider.OPENAI_RESPONSES:
            return [UnknownBlock({"type": "web_search_call", "id": "ws_1", "status": "completed"})]
        case _:
            return [TextBlock("")]


def random_blocks(rng: random.Random, provider: Provider, *, whole: bool) -> list[Block]:
    """What a stream may leave. A whole message has closed blocks only; of a cut one the last may be open."""
    blocks = list[Block]()
    for _ in range(rng.randint(0, 2)):
        blocks.append(rng.choice((thought(), thought(), RedactedBlock("c2VhbGVk"))))
        if rng.random() < 0.3:
            blocks.append(text(f"so {rng.randint(0, 9)}", provider=provider))
    if rng.random() < 0.6:
        blocks.append(text(rng.choice(("Reading.", "Reading.", " \n")), provider=provider))
    if rng.random() < 0.15:
        blocks += _odd_blocks(rng, provider)
    for number in range(1, rng.randint(1, 4)):
        call_id = f"c{rng.randint(1, 3)}" if rng.random() < 0.3 else f"c{rng.randint(4, 10**9)}"
        made = _odd_call(rng, provider, call(number, provider, call_id=call_id))
        blocks.append(made)
        if rng.random() < 0.1:
            blocks.append(rng.choice((text("so", provider=provider), thought())))
    if whole:
        return blocks or [text("Done.", provider=provider)]
    last = rng.choice((thought(closed=False), text("Firs", closed=False), call(1, provider, closed=False), None))
    return [*blocks, *([last] if last is not None else [])]
