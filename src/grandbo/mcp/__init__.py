"""The MCP edge: tools, resources and prompts for agents, over stdio and streamable HTTP."""
