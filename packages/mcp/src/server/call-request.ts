/** Tool call of an MCP client, independent of the transport. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  SdkError,
  SdkErrorCode,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { RunEvent, RunHandle } from "@statewright/core";
import type { McpCaller } from "./caller.ts";
import { createProgress, type Progress } from "./progress.ts";

/** Tool call with its caller, signal and client capabilities. */
export interface CallRequest {
  readonly caller: McpCaller;
  /** Aborts on a cancel by the client and on a disconnect. */
  readonly signal: AbortSignal;
  readonly progress: Progress | undefined;
  /** True if the client can show forms to a person. */
  readonly canAsk: boolean;
  /** Request state returned by the client after a form request: the name of the thread. */
  readonly state: string | undefined;
  /** Unvalidated form responses of a person. */
  readonly responses: Readonly<Record<string, unknown>> | undefined;
}

/** Creates a call request from the arguments of an SDK handler. */
export function createCallRequest(server: Server, caller: McpCaller, context: ServerContext): CallRequest {
  const { signal, requestState, inputResponses, envelope } = context.mcpReq;
  const capabilities: unknown =
    envelope === undefined ? server.getClientCapabilities() : Reflect.get(envelope, CLIENT_CAPABILITIES_META_KEY);
  return {
    caller,
    signal,
    progress: createProgress(context),
    canAsk: supportsForms(capabilities),
    state: requestState<string>(),
    responses: inputResponses,
  };
}

/**
 * Returns true if the client supports forms. An `elicitation` capability without `form` and `url` means forms, as in
 * older protocol versions.
 */
function supportsForms(capabilities: unknown): boolean {
  const elicitation = getProperty(capabilities, "elicitation");
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return getProperty(elicitation, "form") !== undefined || getProperty(elicitation, "url") === undefined;
}

function getProperty(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** Returns true if a tool call was aborted by a disconnect of its client, not by a cancel. */
export function isDisconnected({ reason }: AbortSignal): boolean {
  return reason instanceof SdkError && reason.code === SdkErrorCode.ConnectionClosed;
}

/** Sends the progress of a run to the client, as text from `describe`. Returns a function that stops the progress. */
export function forwardProgress(
  handle: Pick<RunHandle<unknown>, "on">,
  { progress }: CallRequest,
  describe: (event: RunEvent) => string | undefined,
): () => void {
  if (progress === undefined) return stopNothing;
  return handle.on((event) => {
    const line = describe(event);
    if (line !== undefined) progress.send(line);
  });
}

function stopNothing(): void {
  // The client requested no progress.
}
