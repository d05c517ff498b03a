"""Grandbo behind the interfaces of agent frameworks. Each needs its extra: `grandbo[langgraph]`."""
