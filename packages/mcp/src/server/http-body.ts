/** Request body: JSON only, within the limits of size and time. */
import type { World } from "@statewright/core";
import { createRefusal } from "./http-access.ts";
import { findMessageProblem, type McpLimits } from "./limits.ts";

/** Parsed body, or the refusal of the request. */
export type BodyResult = { readonly message: unknown } | { readonly refusal: Response };

/** Reads and parses the body of a request. */
export async function readBody(request: Request, limits: McpLimits, world: World): Promise<BodyResult> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json(?:\s*;\s*charset=(?:"utf-8"|utf-8))?\s*$/i.test(type))
    return refuseBody(415, "Send application/json");
  if (request.headers.has("content-encoding")) return refuseBody(415, "Send the body without content-encoding");
  if (Number(request.headers.get("content-length") ?? 0) > limits.messageBytes) return refuseTooLarge(limits);
  const bytes = await readBytes(request, limits, world);
  if (bytes === "late") return refuseBody(408, "The body timed out");
  if (bytes === "large") return refuseTooLarge(limits);
  if (bytes === "broken") return refuseBody(400, "The body is incomplete");
  let message: unknown;
  try {
    message = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return refuseBody(400, "The body is not valid JSON");
  }
  const problem = findMessageProblem(message, limits);
  return problem === undefined ? { message } : refuseBody(400, `The body ${problem}`);
}

async function readBytes(
  { body }: Request,
  { messageBytes, requestMs }: McpLimits,
  { schedule }: World,
): Promise<Uint8Array | "late" | "large" | "broken"> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  let isLate = false;
  const cancelReader = (): void => {
    reader.cancel().catch(ignoreCancelError);
  };
  const stopTimer = schedule.after(requestMs, () => {
    isLate = true;
    cancelReader();
  });
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (isLate) return "late";
      if (done) return Buffer.concat(chunks);
      size += value.byteLength;
      if (size > messageBytes) {
        cancelReader();
        return "large";
      }
      chunks.push(value);
    }
  } catch {
    return isLate ? "late" : "broken";
  } finally {
    stopTimer();
  }
}

function ignoreCancelError(): void {
  // The rest of the body is not needed.
}

function refuseTooLarge({ messageBytes }: McpLimits): BodyResult {
  return refuseBody(413, `The body is larger than ${messageBytes} bytes`);
}

function refuseBody(status: number, message: string): BodyResult {
  return { refusal: createRefusal(status, message) };
}
