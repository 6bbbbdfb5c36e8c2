"""The official Python SDK as a client of `pilot mcp`: lists the tools, and calls those that the arguments name.

Usage: session.py PROGRAM, with one call on each line of standard input: {"tool": …, "arguments": {…}}. Prints a line of
JSON for the tools and one for each call. The SDK compares every result with the tool's output schema.
"""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main(program: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name.startswith("PILOT_")}
    server = StdioServerParameters(command=program, args=["mcp"], env=environment)
    async with Client(server) as client:
        listed = await client.list_tools()
        print(json.dumps({"tools": [tool.name for tool in listed.tools]}), flush=True)
        for line in sys.stdin:
            call = json.loads(line)
            try:
                result = await client.call_tool(call["tool"], call["arguments"])
                said = {"error": result.is_error, "text": result.content[0].text, "data": result.structured_content}
            except MCPError as error:
                said = {"protocol_error": str(error)}
            print(json.dumps(said), flush=True)


asyncio.run(main(sys.argv[1]))
