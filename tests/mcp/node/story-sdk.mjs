// The story through @modelcontextprotocol/sdk 1.x: `node story-sdk.mjs URL`.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { answerOf, tell } from "./story.mjs";

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const client = new Client({ name: "story", version: "1" });
await client.connect(transport);
await client.ping();
const { tools } = await client.listTools();
const call = async (name, args) => answerOf(await client.callTool({ name, arguments: args }));
await tell(tools.map((tool) => tool.name), call, "sdk");
console.log("told by sdk in", transport.protocolVersion);
await client.close();
