/** The body of a request: JSON and nothing else, no more of it than allowed, in no more time than allowed. */
import type { World } from "@statewright/core";
import { refused } from "./http-access.ts";
import { type McpLimits, unfitMessage } from "./limits.ts";

/** What a body holds, or the answer to a request whose body is not taken. */
export type ReadBody = { readonly message: unknown } | { readonly refusal: Response };

/** Read the body of a request. */
export async function readBody(request: Request, limits: McpLimits, world: World): Promise<ReadBody> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json(?:\s*;\s*charset=(?:"utf-8"|utf-8))?\s*$/i.test(type))
    return no(415, "Send application/json");
  if (request.headers.has("content-encoding")) return no(415, "Send the body as it is, without an encoding");
  if (Number(request.headers.get("content-length") ?? 0) > limits.messageBytes) return tooLarge(limits);
  const bytes = await bytesOf(request, limits, world);
  if (bytes === "late") return no(408, "The body did not come in time");
  if (bytes === "large") return tooLarge(limits);
  if (bytes === "broken") return no(400, "The body did not come whole");
  let message: unknown;
  try {
    message = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return no(400, "The body is no JSON");
  }
  const unfit = unfitMessage(message, limits);
  return unfit === undefined ? { message } : no(400, `The body ${unfit}`);
}

async function bytesOf(
  { body }: Request,
  { messageBytes, requestMs }: McpLimits,
  { schedule }: World,
): Promise<Uint8Array | "late" | "large" | "broken"> {
  if (body === null) return new Uint8Array();
  const reader = body.getReader();
  let isLate = false;
  const giveUp = (): void => {
    reader.cancel().catch(brokenAlready);
  };
  const stopTimer = schedule.after(requestMs, () => {
    isLate = true;
    giveUp();
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
        giveUp();
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

function brokenAlready(): void {
  // Nobody reads the rest of it.
}

function tooLarge({ messageBytes }: McpLimits): ReadBody {
  return no(413, `The body is larger than ${messageBytes} bytes`);
}

function no(status: number, message: string): ReadBody {
  return { refusal: refused(status, message) };
}
