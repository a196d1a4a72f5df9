/** How a tool reads artifacts of its thread. */
import type { ArtifactRow } from "./artifact.ts";

/** A part of an artifact as a model may read it. */
export interface ArtifactPage {
  readonly handle: string;
  readonly name: string;
  readonly mimeType: string;
  readonly text: string;
  /** Where the text begins, in bytes of the whole as a model may read it. */
  readonly offset: number;
  /** Where the next page begins; absent on the last one. */
  readonly next?: number;
  /** Of the whole as a model may read it. */
  readonly bytes: number;
}

/** The artifacts of the call's thread. Each is named by its handle or its key; one that is not there is a `not_found` ToolError. */
export interface ToolArtifacts {
  /** Rows, in the order in which they were kept. */
  list(): Promise<readonly ArtifactRow[]>;
  /** A body as it is kept. */
  read(artifact: string): Promise<Uint8Array>;
  /** At most `limit` bytes of text from `offset` on, whole code points, redacted by the tool that made the artifact. */
  page(artifact: string, at: { readonly offset: number; readonly limit: number }): Promise<ArtifactPage>;
}
