"""langgraph: a compiled graph of one ToolNode, which is asked directly, without a model. Extra `bench`."""

import importlib.util

from benchmarks.baselines.tool_paths import Turn

NAME = "langgraph"
INSTALLED = importlib.util.find_spec("langgraph") is not None


def open_turn() -> Turn:
    """A graph that answers the calls of the message it is given."""
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    @tool
    async def noop(x: int) -> str:
        """Do nothing."""
        return str(x)

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([noop]))
    graph.add_edge(START, "tools")
    compiled = graph.compile()

    async def turn(calls: int) -> None:
        wanted = [{"name": "noop", "args": {"x": index}, "id": f"call_{index}"} for index in range(calls)]
        answer = await compiled.ainvoke({"messages": [AIMessage("", tool_calls=wanted)]})
        assert len(answer["messages"]) == calls + 1

    return turn
