/** One call as it came from a client, whatever it came over. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  SdkError,
  SdkErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { RunEvent, RunHandle } from "@statewright/core";
import type { McpCaller } from "./caller.ts";
import { type Progress, progressOf } from "./progress.ts";

/** One call. */
export interface CallRequest {
  readonly caller: McpCaller;
  /** Fires when the client cancels it or has gone. */
  readonly signal: AbortSignal;
  readonly progress: Progress | undefined;
  /** Whether the client can show forms to people. */
  readonly canAsk: boolean;
  /** What the call gave back when it asked people: the name of its thread. */
  readonly state: string | undefined;
  /** What people answered then, unchecked. */
  readonly responses: Readonly<Record<string, unknown>> | undefined;
}

/** What a handler was given as one call. */
export function callRequestOf(server: Server, caller: McpCaller, context: ServerContext): CallRequest {
  const { signal, requestState, inputResponses, envelope } = context.mcpReq;
  const capabilities: unknown =
    envelope === undefined ? server.getClientCapabilities() : Reflect.get(envelope, CLIENT_CAPABILITIES_META_KEY);
  return {
    caller,
    signal,
    progress: progressOf(context),
    canAsk: showsForms(capabilities),
    state: requestState<string>(),
    responses: inputResponses,
  };
}

/** A client that says nothing of its forms has them: the word alone was enough before there were others. */
function showsForms(capabilities: unknown): boolean {
  const elicitation = partOf(capabilities, "elicitation");
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return partOf(elicitation, "form") !== undefined || partOf(elicitation, "url") === undefined;
}

function partOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Whether a call ended since its client is no longer there, and not since it was cancelled. */
export function hasLostClient({ reason }: AbortSignal): boolean {
  return reason instanceof SdkError && reason.code === SdkErrorCode.ConnectionClosed;
}

/** Tell the client of a call what its run is doing, as `say` has it, until the returned function is called. */
export function tellProgress(
  handle: Pick<RunHandle<unknown>, "on">,
  { progress }: CallRequest,
  say: (event: RunEvent) => string | undefined,
): () => void {
  if (progress === undefined) return nobodyListens;
  return handle.on((event) => {
    const line = say(event);
    if (line !== undefined) progress.tell(line);
  });
}

function nobodyListens(): void {
  // The client asked for no progress.
}
