/** One connection: a server of the protocol that answers for one client. Connections share nothing but what is offered. */
import {
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
} from "@modelcontextprotocol/server";
import type { World } from "@statewright/core";
import { callRequestOf } from "./call-request.ts";
import type { McpCaller } from "./caller.ts";
import { artifactTemplate, failure } from "./content.ts";
import type { GraphCalls } from "./graph-calls.ts";
import type { McpLimits } from "./limits.ts";
import type { Resources } from "./resources.ts";
import type { ToolCalls } from "./tool-calls.ts";

/** What is offered to every client. */
export interface Served {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  readonly tools: ToolCalls;
  readonly graphs: GraphCalls;
  readonly resources: Resources;
  readonly limits: McpLimits;
  readonly world: World;
  /** Calls at work, by client. */
  readonly atWork: Map<string, number>;
  /** The same calls, as promises: whoever closes the server waits for them. */
  readonly inFlight: Set<Promise<unknown>>;
  readonly isClosed: () => boolean;
}

/** A connection, not yet bound to what carries its messages. */
export interface Connection {
  readonly server: Server;
  /** Calls that it has at work. */
  readonly calls: () => number;
}

/** Make a connection for a client. */
export function connectionFor(served: Served, caller: McpCaller): Connection {
  const { name, version, instructions, tools, graphs, resources, limits, world } = served;
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
    world.log("warn", "a message of an MCP client was not taken", { client: caller.id, error });

  async function call(
    tool: string,
    work: () => Promise<CallToolResult | InputRequiredResult>,
  ): Promise<CallToolResult | InputRequiredResult> {
    const before = served.atWork.get(caller.id) ?? 0;
    if (served.isClosed()) return failure("The server is stopping. Call again later.");
    if (before >= limits.calls)
      return failure(`${limits.calls} calls are at work already. Call again when one has ended.`);
    served.atWork.set(caller.id, before + 1);
    calls += 1;
    const working = work();
    served.inFlight.add(working);
    try {
      return await working;
    } catch (error) {
      world.log("error", `a call of "${tool}" failed`, { client: caller.id, error });
      return failure(`"${tool}" could not be run. The log of the server says why.`);
    } finally {
      served.inFlight.delete(working);
      calls -= 1;
      const left = (served.atWork.get(caller.id) ?? 1) - 1;
      if (left === 0) served.atWork.delete(caller.id);
      else served.atWork.set(caller.id, left);
    }
  }

  server.setRequestHandler("tools/list", () => ({ tools: [...graphs.list(), ...tools.list()] }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const { name: tool, arguments: args = {} } = params;
    const owner = graphs.has(tool) ? graphs : tools.has(tool) ? tools : undefined;
    if (owner === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${tool}`);
    const request = callRequestOf(server, caller, context);
    const result = await call(tool, () => owner.call(tool, args, request));
    await request.progress?.sent();
    return result;
  });
  server.setRequestHandler("resources/list", () => ({ resources: [...resources.list()] }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      {
        uriTemplate: artifactTemplate,
        name: "artifacts",
        description: "Large results that calls of this client have kept.",
      },
    ],
  }));
  server.setRequestHandler("resources/read", ({ params }) => resources.read(params.uri, caller));
  return { server, calls: () => calls };
}
