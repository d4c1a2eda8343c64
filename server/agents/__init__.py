"""How coding agents talk to us: an MCP server on stdio. It knows how to ask and what an answer looks like; how anything
is found or kept up to date, it leaves to the parts that the language server stands on."""
