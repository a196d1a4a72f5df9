/** What files and processes throw, as the tool error that the model reads. */
import { ToolError } from "@statewright/core";
import { isHostError } from "@statewright/host";

/** Codes that say that the system has no room now; nothing was begun. */
const noRoom = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);

/** Do something with files or processes; what they refuse becomes a tool error with the same words. */
export async function onHost<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    throw hostFailure(error);
  }
}

/** The tool error for what a file or a process threw; anything else as it is. */
export function hostFailure(error: unknown): unknown {
  if (!isHostError(error)) return error;
  const { code, message, systemCode } = error;
  if (code === "cancelled") return ToolError.cancelled();
  if (code === "outside") return new ToolError("denied", message, { cause: error });
  if (systemCode !== undefined && noRoom.has(systemCode)) return ToolError.unavailable(message, { cause: error });
  return ToolError.failed(message, { cause: error });
}
