/**
 * Artifacts: large outputs of tool calls, stored with the thread of the call.
 *
 * A body is stored once per thread, under the SHA-256 of its bytes; each call that produced the body has its own row.
 * All branches and namespaces of a thread, forks included, share the artifacts. Retention does not delete artifacts.
 */

/** Row of an artifact produced by a call. */
export interface ArtifactRow {
  /** SHA-256 of the body, in hexadecimal; equal bodies have equal keys. */
  readonly key: string;
  readonly name: string;
  readonly mimeType: string;
  /** Size of the body in bytes. */
  readonly bytes: number;
  /** True when the body is UTF-8 text. */
  readonly text: boolean;
  /**
   * Redaction by the tool's policy: `none` without a policy, `skipped` when the body is stored unredacted in spite of
   * a policy.
   */
  readonly redaction: "done" | "skipped" | "none";
  readonly tool: string;
  /** Producing call: its run, namespace, superstep, task and id. */
  readonly run: string;
  readonly branch: string;
  readonly step: number;
  readonly task: string;
  readonly call: string;
  readonly at: number;
}

/** An artifact to store. */
export interface ArtifactWrite {
  readonly row: ArtifactRow;
  /** Must not change after the write. */
  readonly body: Uint8Array;
}

/** Range of a body: at most `limit` bytes from `offset`. */
export interface ByteRange {
  readonly offset: number;
  readonly limit: number;
}

/** Filter of artifact rows in a thread. */
export interface ArtifactFilter {
  readonly run?: string;
  /** Key or {@link getArtifactHandle handle} of a body. */
  readonly key?: string;
  readonly limit?: number;
}

/** Read and delete access to stored artifacts. Unknown artifacts are `undefined` or an empty list. */
export interface StoredArtifacts {
  /** Lists the rows of a thread, oldest first. */
  list(thread: string, filter?: ArtifactFilter): Promise<readonly ArtifactRow[]>;
  /** Reads a body or a range of its bytes; a range beyond the end is empty. */
  read(thread: string, key: string, range?: ByteRange): Promise<Uint8Array | undefined>;
  /** Deletes a body and its rows. Returns false for an unknown body. */
  delete(thread: string, key: string): Promise<boolean>;
}

/** User-provided artifact store, such as files or an object store. */
export interface ArtifactStore extends StoredArtifacts {
  /**
   * Stores an artifact. Must be idempotent: the same call may store the same artifact again after a crash, under the
   * same key.
   */
  put(thread: string, artifact: ArtifactWrite): Promise<void>;
}

/** Characters of a handle. */
export const handleLength = 16;

/** Returns the short name of a body in its thread, as shown to the model and accepted by `read_artifact`. */
export function getArtifactHandle(key: string): string {
  return key.slice(0, handleLength);
}

/** Returns true if a row matches a filter. */
export function matchesArtifactFilter({ run, key }: ArtifactRow, filter: ArtifactFilter): boolean {
  if (filter.run !== undefined && filter.run !== run) return false;
  return filter.key === undefined || filter.key === key || filter.key === getArtifactHandle(key);
}

/** Computes the key of a body: its SHA-256 in hexadecimal. */
export async function computeArtifactKey(body: Uint8Array): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", body as Uint8Array<ArrayBuffer>));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Returns a copy of the bytes in a range. */
export function sliceRange(body: Uint8Array, { offset, limit }: ByteRange): Uint8Array {
  return body.slice(offset, offset + limit);
}
