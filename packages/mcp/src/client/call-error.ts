/** Conversion of a failed MCP call to a tool error, with a message for the model and a disposition. */
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { type EffectClass, isToolError, ToolError, type ToolErrorOptions } from "@statewright/core";
import { isHostError } from "@statewright/host";
import { isUnauthorized, type Refusal } from "./http-refusal.ts";
import { responseLostCode } from "./http-transport.ts";

/** Maximum length of server text in an error. */
const maxQuotedLength = 2_000;

/** Truncates a long text. */
export function truncateText(text: string): string {
  return text.length > maxQuotedLength ? `${text.slice(0, maxQuotedLength)}…` : text;
}

/**
 * Returns true for an expired session: the server did not process the call. Many servers use status 400 instead of
 * 404.
 */
export function isSessionExpired(error: unknown): boolean {
  if (!(error instanceof SdkHttpError)) return false;
  return error.status === 404 || (error.status === 400 && /session/i.test(error.message));
}

/** Context of a failed call. */
export interface CallFailure {
  readonly server: string;
  readonly effect: EffectClass;
  /** End reason of the server; undefined while it is running. */
  readonly endReason: string | undefined;
  /** HTTP refusal of the server, as a message for people. */
  readonly refusal: Refusal | undefined;
}

/**
 * Converts the failure of a call to a tool error. The user message contains more of a refusal than the model message,
 * because a model cannot fix it.
 */
export function toCallError(error: unknown, { server, effect, endReason, refusal }: CallFailure): unknown {
  if (isToolError(error)) return error;
  if (isHostError(error)) return fromHostError(error, server, effect);
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error;
    if (status === 401 || status === 403)
      return new ToolError(
        "denied",
        `MCP server "${server}" denied the call: it requires other credentials.`,
        createUserMessage(refusal),
      );
    return status >= 400 && status < 500
      ? ToolError.failed(`MCP server "${server}" responded with status ${status}.`, createUserMessage(refusal))
      : createLostError(server, effect, `the server responded with status ${status}`);
  }
  if (error instanceof ProtocolError) return fromProtocolError(error, server, effect);
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.InvalidResult)
      return new ToolError(
        "invalid_output",
        `MCP server "${server}" returned an invalid result: ${getErrorText(error)}`,
      );
    if (error.code === SdkErrorCode.ConnectionClosed)
      return createLostError(server, effect, endReason ?? "the connection closed");
  }
  if (isUnauthorized(error))
    return new ToolError(
      "denied",
      `MCP server "${server}" requires a new login by a person.`,
      createUserMessage(refusal),
    );
  return endReason === undefined
    ? ToolError.failed(`MCP server "${server}" failed: ${getErrorText(error)}`, { cause: error })
    : createLostError(server, effect, endReason);
}

function createUserMessage(refusal: Refusal | undefined): ToolErrorOptions {
  if (refusal === undefined) return {};
  const { what, next } = refusal;
  return { userMessage: `${what.charAt(0).toUpperCase()}${what.slice(1)}. ${next}.` };
}

function fromProtocolError(error: ProtocolError, server: string, effect: EffectClass): ToolError {
  switch (error.code) {
    case responseLostCode:
      return createLostError(server, effect, error.message);
    case -32_602:
      return ToolError.invalidArgs(`MCP server "${server}" rejected the arguments: ${getErrorText(error)}`);
    case -32_601:
      return ToolError.notFound(`MCP server "${server}" does not support the call: ${getErrorText(error)}`);
    case -32_700:
      return new ToolError("invalid_output", `MCP server "${server}" returned an invalid response.`);
    default:
      return ToolError.failed(`MCP server "${server}" failed: ${getErrorText(error)}`);
  }
}

const unreachableCodes: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENETUNREACH"]);

function fromHostError(
  error: { readonly code: string; readonly message: string; readonly systemCode?: string | undefined },
  server: string,
  effect: EffectClass,
): ToolError {
  const isUnsent =
    error.code === "denied" || error.code === "not_found" || unreachableCodes.has(error.systemCode ?? "");
  return isUnsent
    ? ToolError.unavailable(`MCP server "${server}" is not reachable: ${error.message}`)
    : createLostError(server, effect, error.message.replace(/\.$/, ""));
}

/**
 * Error for a server or connection lost during the call: retryable for a repeatable effect, otherwise of unknown
 * outcome.
 */
function createLostError(server: string, effect: EffectClass, reason: string): ToolError {
  const what = `MCP server "${server}" was lost during the call: ${reason}.`;
  return effect === "once"
    ? new ToolError("unknown_outcome", `${what} The outcome of the call is unknown.`)
    : new ToolError("crashed", what, { disposition: "retry" });
}

function getErrorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // The SDK adds the code in front of the server's message.
  return truncateText(text.replace(/^MCP error -?\d+: /, ""));
}
