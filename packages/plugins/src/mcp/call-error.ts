/** Why a call of a server failed, as a model reads it, and who acts next. */
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { type EffectClass, isToolError, ToolError, type ToolErrorOptions } from "@statewright/core";
import { isHostError } from "@statewright/host";
import { isUnauthorized, type Refusal } from "./http-refusal.ts";
import { lostCode } from "./http-transport.ts";

/** How much of a server's words stands in an error. */
const mostSaid = 2_000;

/** A text, cut where it is long. */
export function cutShort(text: string): string {
  return text.length > mostSaid ? `${text.slice(0, mostSaid)}…` : text;
}

/** Whether a server has forgotten its session: it has not looked at the call. Many say so with 400 in place of 404. */
export function isSessionGone(error: unknown): boolean {
  if (!(error instanceof SdkHttpError)) return false;
  return error.status === 404 || (error.status === 400 && /session/i.test(error.message));
}

/** What is known beside the failure itself. */
export interface CallFailure {
  readonly server: string;
  readonly effect: EffectClass;
  /** How the server ended, where it has. */
  readonly ended: string | undefined;
  /** What it says by the status of its answer, for people. */
  readonly refusal: Refusal | undefined;
}

/** The failure of a call as a tool error. People read more of a refusal than a model, which can do nothing about it. */
export function callError(error: unknown, { server, effect, ended, refusal }: CallFailure): unknown {
  if (isToolError(error)) return error;
  if (isHostError(error)) return hostError(error, server, effect);
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error;
    if (status === 401 || status === 403)
      return new ToolError(
        "denied",
        `The MCP server "${server}" refuses the call: it wants another authorization.`,
        forPeople(refusal),
      );
    return status >= 400 && status < 500
      ? ToolError.failed(`The MCP server "${server}" answered with the status ${status}.`, forPeople(refusal))
      : lost(server, effect, `it answered with the status ${status}`);
  }
  if (error instanceof ProtocolError) return protocolError(error, server, effect);
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.InvalidResult)
      return new ToolError("invalid_output", `The MCP server "${server}" gave a result that is none: ${said(error)}`);
    if (error.code === SdkErrorCode.ConnectionClosed) return lost(server, effect, ended ?? "the connection was closed");
  }
  if (isUnauthorized(error))
    return new ToolError("denied", `The MCP server "${server}" wants a person to log in again.`, forPeople(refusal));
  return ended === undefined
    ? ToolError.failed(`The MCP server "${server}" could not do it: ${said(error)}`, { cause: error })
    : lost(server, effect, ended);
}

function forPeople(refusal: Refusal | undefined): ToolErrorOptions {
  if (refusal === undefined) return {};
  const { what, next } = refusal;
  return { userMessage: `${what.charAt(0).toUpperCase()}${what.slice(1)}. ${next}.` };
}

function protocolError(error: ProtocolError, server: string, effect: EffectClass): ToolError {
  switch (error.code) {
    case lostCode:
      return lost(server, effect, error.message);
    case -32_602:
      return ToolError.invalidArgs(`The MCP server "${server}" refuses the arguments: ${said(error)}`);
    case -32_601:
      return ToolError.notFound(`The MCP server "${server}" does not know the call: ${said(error)}`);
    case -32_700:
      return new ToolError("invalid_output", `The MCP server "${server}" gave an answer that is none.`);
    default:
      return ToolError.failed(`The MCP server "${server}" could not do it: ${said(error)}`);
  }
}

const notReached: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EHOSTUNREACH", "ENETUNREACH"]);

function hostError(
  error: { readonly code: string; readonly message: string; readonly systemCode?: string | undefined },
  server: string,
  effect: EffectClass,
): ToolError {
  const isUnsent = error.code === "denied" || error.code === "not_found" || notReached.has(error.systemCode ?? "");
  return isUnsent
    ? ToolError.unavailable(`The MCP server "${server}" could not be asked: ${error.message}`)
    : lost(server, effect, error.message.replace(/\.$/, ""));
}

/** The server, or the way to it, ended in the call: what may be repeated may be tried again, anything else is not known. */
function lost(server: string, effect: EffectClass, how: string): ToolError {
  const what = `The MCP server "${server}" was lost during the call: ${how}.`;
  return effect === "once"
    ? new ToolError("unknown_outcome", `${what} Whether the call did something is not known.`)
    : new ToolError("crashed", what, { disposition: "retry" });
}

function said(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // The client writes the code in front of what the server said.
  return cutShort(text.replace(/^MCP error -?\d+: /, ""));
}
