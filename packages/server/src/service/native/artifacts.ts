/** Artifacts of a thread: large outputs of tool calls. */

import { getArtifactHandle } from "@statewright/core/adapter";
import type { ArtifactRow } from "@statewright/core/store";
import type { CallerScope } from "../caller-scope.ts";
import type { Page, PageOptions } from "../caller-service.ts";
import type { Cursors } from "../cursors.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { loadPage } from "../pages.ts";
import { createUnknownArtifactProblem } from "./native-problems.ts";

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
  /** Reads a body in pieces, by its key. */
  readArtifact(thread: string, key: string, range: ArtifactRange): Promise<AsyncIterable<Uint8Array>>;
}

/** Bytes that are read at once. */
const pieceBytes = 256 * 1024;

/** Creates the acts on the artifacts of a caller's threads. */
export function createArtifactActs(scope: CallerScope, cursors: Cursors): ArtifactActs {
  const { artifacts } = scope.store;
  return {
    listArtifacts: async (thread, { run, ...page }) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.read" });
      return await loadPage({ scope, cursors }, page, {
        name: `artifacts ${stored} ${run ?? ""}`,
        load: async ({ before, limit }) => {
          const start = before === undefined ? 0 : Number(before) + 1;
          const rows = await artifacts.list(stored, { ...omitUndefined({ run }), limit: start + limit });
          return rows.slice(start).map((row, nth) => ({ row, index: start + nth }));
        },
        getCursor: ({ index }) => String(index),
        toItem: ({ row }) => toArtifactView(row),
      });
    },
    getArtifact: async (thread, key) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.read" });
      const newest = (await artifacts.list(stored, { key })).at(-1);
      if (newest === undefined) throw createUnknownArtifactProblem(key);
      return toArtifactView(newest);
    },
    readArtifact: async (thread, key, range) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.read" });
      return readPieces(scope, stored, key, range);
    },
  };
}

async function* readPieces(
  { store }: CallerScope,
  stored: string,
  key: string,
  { offset, bytes }: ArtifactRange,
): AsyncGenerator<Uint8Array, undefined, undefined> {
  const end = offset + bytes;
  for (let start = offset; start < end; start += pieceBytes) {
    const limit = Math.min(pieceBytes, end - start);
    const piece = await store.artifacts.read(stored, key, { offset: start, limit });
    if (piece?.byteLength !== limit) throw createUnknownArtifactProblem(key);
    yield piece;
  }
  return undefined;
}

function toArtifactView({ key, name, mimeType, bytes, text, tool, run, call, at }: ArtifactRow): ArtifactView {
  return { key, handle: getArtifactHandle(key), name, mimeType, bytes, isText: text, tool, run, callId: call, at };
}
