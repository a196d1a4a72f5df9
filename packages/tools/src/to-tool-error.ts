/** Converts errors of files and processes to tool errors for the model. */
import { ToolError } from "@statewright/core";
import { isHostError } from "@statewright/host";

/** System error codes of exhausted resources; the operation did not start. */
const exhaustionCodes = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);

/** Runs an operation on files or processes; converts host errors to tool errors with the same message. */
export async function runOnHost<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw toToolError(error);
  }
}

/** Converts a host error to a tool error; returns other values unchanged. */
export function toToolError(error: unknown): unknown {
  if (!isHostError(error)) return error;
  const { code, message, systemCode } = error;
  if (code === "cancelled") return ToolError.cancelled();
  if (code === "outside") return new ToolError("denied", message, { cause: error });
  if (systemCode !== undefined && exhaustionCodes.has(systemCode))
    return ToolError.unavailable(message, { cause: error });
  return ToolError.failed(message, { cause: error });
}
