/** Bodies of requests: JSON only, within the limits of size and time. */
import type { World } from "@statewright/core";
import type * as z from "zod";
import { findDuplicateKey } from "./find-duplicate-key.ts";
import { findJsonProblem } from "./find-json-problem.ts";
import type { ServerLimits } from "./limits.ts";
import { RequestProblem } from "./problem.ts";
import { createProblem, type ProblemCode } from "./problem-table.ts";
import { toPointer } from "./to-problem.ts";

/** What the reading of a body needs. */
export interface BodyOptions {
  readonly limits: ServerLimits;
  readonly world: World;
  /** Maximum bytes. Default: the limit `bodyBytes`. */
  readonly maxBytes?: number | undefined;
}

const jsonPattern = /^application\/json(?:\s*;\s*charset=(?:"utf-8"|utf-8))?\s*$/i;

/**
 * Checks type and declared size of a body before it is read. Throws a problem: 413, 415. Pages of other sites can send
 * text and forms without a preflight request, but not JSON.
 */
export function checkJsonBody(request: Request, maxBytes: number): void {
  const { headers } = request;
  if (!jsonPattern.test(headers.get("content-type") ?? ""))
    throw refuse("unsupported_media_type", "Send the body as application/json.");
  if (headers.has("content-encoding"))
    throw refuse("unsupported_media_type", "Send the body without content-encoding.");
  if (Number(headers.get("content-length") ?? 0) > maxBytes) throw createSizeError(maxBytes);
}

/**
 * Reads a JSON body and checks it by a schema. A request without a body counts as `{}` where the schema takes that. Throws
 * a problem: 400, 408, 413, 415, 422, or 500 `body_was_read`.
 */
export async function readJson<Value>(
  request: Request,
  schema: z.ZodType<Value>,
  options: BodyOptions,
): Promise<Value> {
  const { limits, maxBytes = limits.bodyBytes } = options;
  const empty = hasNoBody(request) ? schema.safeParse({}) : undefined;
  if (empty?.success === true && (await isEmpty(request, options))) return empty.data;
  checkJsonBody(request, maxBytes);
  const { text, value } = parseJson(await readBytes(request, { ...options, maxBytes }));
  const problem = findJsonProblem(value, limits) ?? findDuplicateKey(text);
  if (problem !== undefined)
    throw new RequestProblem(
      createProblem(problem.isTooLarge ? "body_too_large" : "invalid_request", {
        errors: [{ pointer: problem.pointer, detail: problem.detail }],
      }),
    );
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RequestProblem(
    createProblem("invalid_request", {
      errors: parsed.error.issues
        .slice(0, maxIssues)
        .map(({ path, message }) => ({ pointer: toPointer(path), detail: message })),
    }),
  );
}

/** Maximum places that a problem lists. */
const maxIssues = 32;

/** True for a request whose headers announce no body: a body that a parser of the host has read was announced. */
function hasNoBody({ headers }: Request): boolean {
  const isAnnounced = ["content-type", "content-encoding", "transfer-encoding"].some((name) => headers.has(name));
  return !isAnnounced && Number(headers.get("content-length") ?? 0) === 0;
}

/** Returns true if the body has no byte; hosts give some requests without a body an empty stream. */
async function isEmpty(request: Request, options: BodyOptions): Promise<boolean> {
  try {
    return (await readBytes(request, { ...options, maxBytes: 0 })).byteLength === 0;
  } catch (error) {
    if (error instanceof RequestProblem && error.problem.code === "body_too_large") return false;
    throw error;
  }
}

function parseJson(bytes: Uint8Array): { readonly text: string; readonly value: unknown } {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return { text, value: JSON.parse(text) };
  } catch (cause) {
    throw new RequestProblem(createProblem("invalid_json", { detail: describeJsonError(cause, bytes) }));
  }
}

function describeJsonError(cause: unknown, bytes: Uint8Array): string {
  if (bytes.byteLength === 0) return "The body is empty.";
  return cause instanceof SyntaxError ? "The body is not JSON." : "The body is not UTF-8.";
}

/**
 * Reads the bytes of a body, at most `maxBytes`, within the time limit. Holds no more memory than the limit: the rest
 * of a larger body is not read.
 */
export async function readBytes(
  request: Request,
  { limits, world, maxBytes }: BodyOptions & { readonly maxBytes: number },
): Promise<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (request.bodyUsed || request.body?.locked === true) throw createReadError();
  if (request.body === null) {
    if (declared > 0) throw createReadError();
    return new Uint8Array();
  }
  const reader = request.body.getReader();
  let isLate = false;
  const cancelReader = (): void => {
    reader.cancel().catch(ignoreCancelError);
  };
  const stopTimer = world.schedule.after(limits.bodyMs, () => {
    isLate = true;
    cancelReader();
  });
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (isLate) throw refuse("request_timeout", "The body was not received in time.");
      if (done) break;
      size += value.byteLength;
      if (size > maxBytes) {
        cancelReader();
        throw createSizeError(maxBytes);
      }
      chunks.push(value);
    }
  } catch (error) {
    if (error instanceof RequestProblem) throw error;
    throw refuse("invalid_json", "The body is incomplete.");
  } finally {
    stopTimer();
  }
  if (size === 0 && declared > 0) throw createReadError();
  return joinChunks(chunks, size);
}

function joinChunks(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let position = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, position);
    position += chunk.byteLength;
  }
  return bytes;
}

function ignoreCancelError(): void {
  // The rest of the body is not needed.
}

function createSizeError(maxBytes: number): RequestProblem {
  return refuse("body_too_large", `The body is larger than ${maxBytes} bytes.`);
}

/** A body parser of the host, such as `express.json()`, has consumed the body: an empty input would be a lie. */
function createReadError(): RequestProblem {
  return refuse(
    "body_was_read",
    "Mount the server before the body parser of the host, such as express.json() or the content type parsers of Fastify.",
  );
}

function refuse(code: ProblemCode, detail: string): RequestProblem {
  return new RequestProblem(createProblem(code, { detail }));
}
