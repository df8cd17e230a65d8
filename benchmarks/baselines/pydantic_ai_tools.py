"""pydantic-ai: an Agent with a FunctionModel. Extra `bench`."""

import importlib.util
from typing import Any

from benchmarks.baselines.tool_paths import Turn

NAME = "pydantic-ai"
INSTALLED = importlib.util.find_spec("pydantic_ai") is not None


def open_turn() -> Turn:
    """An agent whose model asks for calls once, then says that it is done."""
    # Here, as in all of them: whoever is not measured must not be in memory, where he would slow down everybody's collector.
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    wanted = 0

    async def model(messages: list[Any], _: Any) -> Any:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("noop", {"x": index}) for index in range(wanted)])
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(model))

    @agent.tool_plain
    async def noop(x: int) -> str:
        """Do nothing."""
        return str(x)

    async def turn(calls: int) -> None:
        nonlocal wanted
        wanted = calls
        result = await agent.run("go")
        assert result.output == "done"

    return turn
