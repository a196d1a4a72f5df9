/** Access of a tool to the artifacts of its thread. */
import type { ArtifactRow } from "./artifact.ts";

/** A page of an artifact, redacted for a model. */
export interface ArtifactPage {
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly text: string;
  /** Start of the text, as byte offset in the redacted artifact. */
  readonly offset: number;
  /** Offset of the next page; undefined on the last page. */
  readonly next?: number;
  /** Total bytes of the redacted artifact. */
  readonly bytes: number;
}

/** Artifacts of the thread, by handle or key. Rejects with a `not_found` ToolError for an unknown artifact. */
export interface ToolArtifacts {
  /** Lists the artifact rows, oldest first. */
  list(): Promise<readonly ArtifactRow[]>;
  /** Returns the stored body. */
  read(artifact: string): Promise<Uint8Array>;
  /**
   * Returns at most `limit` bytes of text from `offset`, in whole code points, redacted by the tool that created the
   * artifact.
   */
  page(artifact: string, at: { readonly offset: number; readonly limit: number }): Promise<ArtifactPage>;
}
