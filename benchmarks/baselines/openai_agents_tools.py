"""openai-agents: an Agent with a scripted model, tracing off. Extra `bench`."""

import importlib.util
import json
from typing import Any

from benchmarks.baselines.tool_paths import Turn

NAME = "openai-agents"
INSTALLED = importlib.util.find_spec("agents") is not None


def _answers(wanted: int) -> tuple[list[Any], list[Any]]:
    """What the model says first, the calls, and what it says then."""
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    calls: list[Any] = [
        ResponseFunctionToolCall(arguments=json.dumps({"x": index}), call_id=f"call_{index}", name="noop", type="function_call")
        for index in range(wanted)
    ]
    text = ResponseOutputText(text="done", type="output_text", annotations=[])
    return calls, [ResponseOutputMessage(id="message", role="assistant", status="completed", type="message", content=[text])]


def open_turn() -> Turn:
    """An agent whose model asks for calls once, then says that it is done."""
    from agents import Agent, Runner, function_tool, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage

    set_tracing_disabled(disabled=True)  # else it would send what happened to its vendor
    script: list[list[Any]] = []

    class Script(Model):
        async def get_response(self, *_: Any, **__: Any) -> Any:
            return ModelResponse(output=script.pop(0), usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    @function_tool
    async def noop(x: int) -> str:
        """Do nothing."""
        return str(x)

    agent: Any = Agent(name="bench", model=Script(), tools=[noop])

    async def turn(calls: int) -> None:
        script[:] = _answers(calls)
        result = await Runner.run(agent, "go")
        assert result.final_output == "done"

    return turn
