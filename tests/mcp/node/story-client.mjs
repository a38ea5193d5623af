// The story through @modelcontextprotocol/client 2.x: `node story-client.mjs URL [auto|default]`.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { answerOf, tell } from "./story.mjs";

const [, , url, mode] = process.argv;
const options = mode === "auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "story", version: "1" }, options);
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
const { tools } = await client.listTools();
const call = async (name, args) => answerOf(await client.callTool({ name, arguments: args }));
await tell(tools.map((tool) => tool.name), call, `client-${mode}`);
console.log("told by client in", client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion);
await client.close();
