/**
 * Artifacts: large outputs of tool calls, kept whole beside the thread whose calls made them.
 *
 * A body stands once in a thread, under the SHA-256 of its bytes; each call that gave it has a row of its own. The lines
 * of a thread share its artifacts, forks too, and retention leaves them.
 */

/** That a call gave an artifact. */
export interface ArtifactRow {
  /** SHA-256 of the body, in hexadecimal: the same body has the same key. */
  readonly key: string;
  readonly name: string;
  readonly mimeType: string;
  /** Of the body. */
  readonly bytes: number;
  /** The body is text in UTF-8. */
  readonly text: boolean;
  /** Whether the body was redacted by its tool's policy: `none` had none, `skipped` keeps the body whole in spite of one. */
  readonly redaction: "done" | "skipped" | "none";
  readonly tool: string;
  /** The call that gave it: its run, the line, the superstep, the task, and its id. */
  readonly run: string;
  readonly branch: string;
  readonly step: number;
  readonly task: string;
  readonly call: string;
  readonly at: number;
}

/** An artifact to keep. */
export interface ArtifactWrite {
  readonly row: ArtifactRow;
  /** What holds it does not change it any more. */
  readonly body: Uint8Array;
}

/** A part of a body: at most `limit` bytes from `offset` on. */
export interface ByteRange {
  readonly offset: number;
  readonly limit: number;
}

/** Which artifacts of a thread a list shows. */
export interface ArtifactFilter {
  readonly run?: string;
  /** Those of one body: its key, or its {@link handleOf handle}. */
  readonly key?: string;
  readonly limit?: number;
}

/** What is kept for threads, to be read and removed by anyone. What is not there reads as `undefined`, or an empty list. */
export interface KeptArtifacts {
  /** Rows of a thread, in the order in which they were written. */
  list(thread: string, filter?: ArtifactFilter): Promise<readonly ArtifactRow[]>;
  /** A body, whole or in part; the part that is beyond its end is empty. */
  read(thread: string, key: string, range?: ByteRange): Promise<Uint8Array | undefined>;
  /** Remove a body and its rows; false when the thread has no such body. */
  delete(thread: string, key: string): Promise<boolean>;
}

/** A place of your own for artifacts, such as files or an object store. */
export interface ArtifactStore extends KeptArtifacts {
  /** Keep an artifact. The same call may put the same artifact again after a crash: the body has the same key. */
  put(thread: string, artifact: ArtifactWrite): Promise<void>;
}

/** So many characters of a key are its handle. */
export const handleLength = 16;

/** The short name of a body in its thread: what a model is shown, and gives to `read_artifact`. */
export function handleOf(key: string): string {
  return key.slice(0, handleLength);
}

/** Whether a row is what a filter asks for. */
export function isListed({ run, key }: ArtifactRow, filter: ArtifactFilter): boolean {
  if (filter.run !== undefined && filter.run !== run) return false;
  return filter.key === undefined || filter.key === key || filter.key === handleOf(key);
}

/** The key of a body. */
export async function keyOfBody(body: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of a body that a range names. */
export function inRange(body: Uint8Array, { offset, limit }: ByteRange): Uint8Array {
  return body.slice(offset, offset + limit);
}
