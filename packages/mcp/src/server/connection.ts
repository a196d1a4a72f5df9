/**
 * MCP server instance for a single client connection. Connections share only the served tools, graphs and resources.
 */
import {
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from "@modelcontextprotocol/server";
import type { World } from "@statewright/core";
import { createCallRequest } from "./call-request.ts";
import type { McpCaller } from "./caller.ts";
import { artifactTemplate, createErrorResult } from "./content.ts";
import type { GraphCalls } from "./graph-calls.ts";
import type { McpLimits } from "./limits.ts";
import type { Resources } from "./resources.ts";
import type { ToolCalls } from "./tool-calls.ts";

/** Tools, graphs, resources and limits served to every client. */
export interface ServerConfig {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  readonly tools: ToolCalls;
  readonly graphs: GraphCalls;
  readonly resources: Resources;
  readonly limits: McpLimits;
  readonly world: World;
  /** Number of running tool calls, by client id. */
  readonly runningCalls: Map<string, number>;
  /** Promises of the running tool calls; `close` awaits them. */
  readonly pendingCalls: Set<Promise<unknown>>;
  readonly isClosed: () => boolean;
}

/** Connection without a transport. */
export interface Connection {
  readonly server: Server;
  /** Returns the number of running tool calls of the connection. */
  readonly calls: () => number;
}

/** Creates a connection for a client. */
export function createConnection(config: ServerConfig, caller: McpCaller): Connection {
  const { name, version, instructions, tools, graphs, resources, limits, world } = config;
  let calls = 0;
  const server = new Server(
    { name, version },
    {
      capabilities: { tools: {}, resources: {} },
      inputRequired: { roundTimeoutMs: limits.answerMs },
      ...(instructions === undefined ? {} : { instructions }),
    },
  );
  server.onerror = (error) =>
    world.log("warn", "a message of an MCP client was rejected", { client: caller.id, error });

  async function runCall(
    tool: string,
    work: () => Promise<CallToolResult | InputRequiredResult>,
  ): Promise<CallToolResult | InputRequiredResult> {
    const running = config.runningCalls.get(caller.id) ?? 0;
    if (config.isClosed()) return createErrorResult("The server is stopping. Retry the call later.");
    if (running >= limits.calls)
      return createErrorResult(`${limits.calls} tool calls are already running. Retry after one of them has ended.`);
    config.runningCalls.set(caller.id, running + 1);
    calls += 1;
    const promise = work();
    config.pendingCalls.add(promise);
    try {
      return await promise;
    } catch (error) {
      world.log("error", `tool call "${tool}" failed`, { client: caller.id, error });
      return createErrorResult(`"${tool}" could not run. The server log contains the reason.`);
    } finally {
      config.pendingCalls.delete(promise);
      calls -= 1;
      const remaining = (config.runningCalls.get(caller.id) ?? 1) - 1;
      if (remaining === 0) config.runningCalls.delete(caller.id);
      else config.runningCalls.set(caller.id, remaining);
    }
  }

  server.setRequestHandler("tools/list", () => ({ tools: [...graphs.list(), ...tools.list()] }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const { name: tool, arguments: args = {} } = params;
    const owner = graphs.has(tool) ? graphs : tools.has(tool) ? tools : undefined;
    if (owner === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${tool}`);
    const request = createCallRequest(server, caller, context);
    const result = await runCall(tool, () => owner.call(tool, args, request));
    await request.progress?.flush();
    return result;
  });
  server.setRequestHandler("resources/list", () => ({ resources: [...resources.list()] }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      {
        uriTemplate: artifactTemplate,
        name: "artifacts",
        description: "Large results stored by tool calls of this client.",
      },
    ],
  }));
  server.setRequestHandler("resources/read", ({ params }) => resources.read(params.uri, caller));
  return { server, calls: () => calls };
}
