/** Calls to a supervised server: tool calls, and requests for resources and prompts. */
import {
  isStatewrightError,
  type Tool,
  type ToolCall,
  ToolError,
  type ToolOutput,
  type ToolRuntime,
  type World,
} from "@statewright/core";
import { toolSpec } from "@statewright/core/adapter";
import type { Supervisor } from "@statewright/host";
import { isSessionExpired, toCallError } from "./call-error.ts";
import { createElicitingTool } from "./eliciting-tool.ts";
import { createRequestError, type RequestRunner } from "./mcp-lists.ts";
import { toToolOutput } from "./mcp-result.ts";
import {
  findRefusal,
  type McpCall,
  type McpOutcome,
  type McpSession,
  notSent,
  rejectOnAbort,
  type SessionOptions,
} from "./mcp-session.ts";
import type { McpTool } from "./mcp-tools.ts";

/** Connection to call. */
export interface ServerConnection {
  readonly supervisor: Supervisor<McpSession>;
  readonly session: SessionOptions;
  /** Maximum milliseconds of a request for resources and prompts. */
  readonly requestTimeoutMs: number;
  readonly world: World;
}

/** Calls a tool by its accepted definition. Connects again for an expired session, and for a call that was not sent. */
async function callTool(
  { supervisor, session: sessionOptions }: ServerConnection,
  { definition, pin, parts }: McpTool,
  call: Omit<McpCall, "definition">,
): Promise<McpOutcome> {
  const server = sessionOptions.name;
  let isRetry = false;
  for (;;) {
    const session = await rejectOnAbort(call.signal, supervisor.ensureActive());
    if (session.pins[definition.name] !== pin) throw ToolError.failed(describeChangedTool(server, definition.name));
    try {
      const outcome = await session.call({ ...call, definition });
      supervisor.resetRestarts();
      return outcome;
    } catch (error) {
      if (call.signal.aborted) throw call.signal.reason;
      if (error === notSent) continue;
      if (!isRetry && isSessionExpired(error)) {
        isRetry = true;
        await session.stop();
        continue;
      }
      throw toCallError(error, {
        server,
        effect: parts.effect ?? "once",
        endReason: session.getEndReason(),
        refusal: findRefusal(sessionOptions, error),
      });
    }
  }
}

/** Creates the tool of a definition. With `canElicit` an elicitation of the server is an interrupt of the run. */
export function createServerTool(connection: ServerConnection, tool: McpTool): Tool {
  return connection.session.canElicit ? toElicitingTool(connection, tool) : toPlainTool(connection, tool);
}

function toPlainTool(connection: ServerConnection, tool: McpTool): Tool & { readonly name: string } {
  return Object.freeze({
    name: tool.parts.name,
    spec: toolSpec(tool.parts),
    call: async (_state: unknown, { signal, update }: ToolRuntime, { args }: ToolCall) => {
      const outcome = await callTool(connection, tool, {
        args: args as McpCall["args"],
        signal,
        onProgress: update === undefined ? undefined : (report) => update(toProgressUpdate(report)),
      });
      if (outcome.kind === "done") return toOutput(tool, outcome);
      const { name } = connection.session;
      throw ToolError.failed(`MCP server "${name}" requested an elicitation, which is not enabled.`);
    },
  });
}

function toElicitingTool(connection: ServerConnection, tool: McpTool): Tool {
  return createElicitingTool({
    server: connection.session.name,
    tool,
    callServer: async ({ args, answers, round }, { signal, update }) => {
      const onProgress: McpCall["onProgress"] =
        update === undefined ? undefined : (report) => update(toProgressUpdate(report));
      const outcome = await callTool(connection, tool, { args, answers, round, signal, onProgress });
      // Validate the result here, so that an invalid result fails this call and not a later read of the stored
      // result.
      if (outcome.kind === "done" && tool.check !== undefined) toOutput(tool, outcome);
      return outcome;
    },
    toOutput: (outcome) => toOutput(tool, outcome),
  });
}

function toOutput(tool: McpTool, { result, usage }: Extract<McpOutcome, { kind: "done" }>): ToolOutput {
  const output = toToolOutput(result, tool.definition.name, tool.check);
  return usage === undefined ? output : { ...output, usage };
}

/** Converts progress to an update: a text for people, and the numbers. */
function toProgressUpdate({
  progress,
  total,
  message,
}: {
  progress: number;
  total?: number | undefined;
  message?: string | undefined;
}): {
  readonly content: string;
  readonly details: Readonly<Record<string, number>>;
} {
  const numbers = total === undefined ? { progress } : { progress, total };
  return { content: message ?? Object.values(numbers).join("/"), details: numbers };
}

function describeChangedTool(server: string, tool: string): string {
  return `Tool "${tool}" of MCP server "${server}" changed since its acceptance. A person must accept the change first.`;
}

/** Creates the runner of requests for resources and prompts, each with a timeout. */
export function createRequestRunner(connection: ServerConnection): RequestRunner {
  const { supervisor, session: sessionOptions, requestTimeoutMs, world } = connection;
  return async (action, signal, work) => {
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal?.reason);
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const stopTimer = world.schedule.after(requestTimeoutMs, () =>
      stop.abort(new Error(`timed out after ${requestTimeoutMs} ms`)),
    );
    let session: McpSession | undefined;
    try {
      session = await supervisor.ensureActive();
      return await session.runRequest((client) => work(client, stop.signal));
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (isStatewrightError(error)) throw error;
      const cause: unknown = stop.signal.aborted ? stop.signal.reason : (session?.getEndReason() ?? error);
      const refusal = findRefusal(sessionOptions, cause);
      throw createRequestError({ server: sessionOptions.name, action, cause, refusal });
    } finally {
      stopTimer();
      signal?.removeEventListener("abort", onAbort);
    }
  };
}
