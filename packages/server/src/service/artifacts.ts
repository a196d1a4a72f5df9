/** Artifacts of a thread: large outputs of tool calls. */
import type { Page, PageOptions } from "./caller-service.ts";

/** Large output of a tool call. */
export interface ArtifactView {
  /** SHA-256 of the body in hexadecimal. */
  readonly key: string;
  /** Short name of the body in its thread, as the model sees it. */
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: number;
  /** True for UTF-8 text. */
  readonly isText: boolean;
  readonly tool: string;
  readonly run: string;
  readonly callId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** Bytes of a body: at most `bytes` from `offset`. */
export interface ArtifactRange {
  readonly offset: number;
  readonly bytes: number;
}

/** Acts on the artifacts of a thread. */
export interface ArtifactActs {
  /** Artifacts of a thread, oldest first, one row for each call. */
  listArtifacts(
    thread: string,
    query: PageOptions & { readonly run?: string | undefined },
  ): Promise<Page<ArtifactView>>;
  /** Newest row of a body, by its key or handle. Throws `unknown_artifact` (404). */
  getArtifact(thread: string, key: string): Promise<ArtifactView>;
  /** Reads a body in pieces. Throws `unknown_artifact` before the first piece. */
  readArtifact(thread: string, key: string, range: ArtifactRange): AsyncIterable<Uint8Array>;
}
