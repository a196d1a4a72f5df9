/** Refusal of a server, or a connection that failed. */

/** Place in a body that does not fit. */
export interface FieldError {
  /** JSON pointer, such as `/input/messages/0`. */
  readonly pointer: string;
  readonly detail: string;
}

/** Parts of an error. */
interface ErrorParts {
  readonly code: string;
  readonly status: number;
  readonly errors?: readonly FieldError[] | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Error of a call of the client. `code` is stable: an error code of Statewright such as `thread_busy`, a code of the
 * server such as `forbidden`, or `connection_failed` without a response.
 *
 * @example
 * try {
 *   await client.thread("t1").run("support", { input });
 * } catch (error) {
 *   if (error instanceof ClientError && error.code === "thread_busy") console.log(error.docs);
 * }
 */
export class ClientError extends Error {
  readonly code: string;
  /** HTTP status; 0 without a response. */
  readonly status: number;
  /** Page and section about the code, below `docs/` of the package statewright. */
  readonly docs: string;
  /** Places in the body that do not fit. */
  readonly errors: readonly FieldError[];
  /** Milliseconds after which the server accepts the request, if it says so. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { code, status, errors = [], retryAfterMs, cause }: ErrorParts) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ClientError";
    this.code = code;
    this.status = status;
    this.docs = `errors.md#${code}`;
    this.errors = errors;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Creates the error of a response that is no success, from its problem details. */
export async function createResponseError(response: Response): Promise<ClientError> {
  const { status } = response;
  const body = await readProblem(response);
  const code = typeof body["code"] === "string" ? body["code"] : `http_${status}`;
  const title = typeof body["title"] === "string" ? body["title"] : `The server answered with status ${status}.`;
  const detail = typeof body["detail"] === "string" ? ` ${body["detail"]}` : "";
  return new ClientError(`${title}${detail}`, {
    code,
    status,
    errors: Array.isArray(body["errors"]) ? body["errors"].filter(isFieldError) : [],
    retryAfterMs: readRetryAfter(response.headers),
  });
}

/** Creates the error of the frame `error` of a stream. */
export function createFrameError(data: unknown): ClientError {
  const body = isRecord(data) ? data : {};
  return new ClientError(typeof body["title"] === "string" ? body["title"] : "The stream failed.", {
    code: typeof body["code"] === "string" ? body["code"] : "stream_failed",
    status: typeof body["status"] === "number" ? body["status"] : 500,
  });
}

async function readProblem(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const text = await response.text();
  try {
    const body: unknown = JSON.parse(text);
    return isRecord(body) ? body : {};
  } catch {
    // A proxy answered with a page of its own: the status says enough.
    return {};
  }
}

function readRetryAfter(headers: Headers): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}

function isFieldError(value: unknown): value is FieldError {
  return isRecord(value) && typeof value["pointer"] === "string" && typeof value["detail"] === "string";
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
