/** Serializes a thread export piece by piece: bodies of artifacts may exceed the longest possible text. */
import { toBase64 } from "../../base/base64.ts";
import type { ArtifactRow } from "../../tool/artifacts/artifact.ts";
import { createLineSummary, exportFormat, exportVersion } from "./export-format.ts";
import type { ThreadExport } from "./thread-export.ts";

/** Size of a piece of a body: a multiple of three bytes, so that encoded pieces can be joined. */
export const bodyPieceBytes: number = 3 * 64 * 1024;

/** Minimum characters of a chunk, except the last one. */
const chunkCharacters = 256 * 1024;

/** Serializes a thread export in chunks; `readBody` returns the body of a row without one, in pieces of `bodyPieceBytes`. */
export async function* streamExport(
  exported: ThreadExport,
  readBody: (row: ArtifactRow) => AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void> {
  const summary = createLineSummary();
  let pieces: string[] = [];
  let length = 0;
  const takeChunk = (): string => {
    const chunk = pieces.join("");
    pieces = [];
    length = 0;
    summary.add(chunk);
    return chunk;
  };
  for await (const piece of listPieces(exported, readBody)) {
    pieces.push(piece);
    length += piece.length;
    if (length >= chunkCharacters) yield takeChunk();
  }
  const rest = takeChunk();
  yield rest + summary.createLastLine();
}

async function* listPieces(
  exported: ThreadExport,
  readBody: (row: ArtifactRow) => AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void> {
  yield* listRowLines(exported);
  const seen = new Set<string>();
  for (const { row, body } of exported.artifacts) {
    if (seen.has(row.key)) {
      yield toLine("artifact", { artifact: { row } });
      continue;
    }
    seen.add(row.key);
    const line = toLine("artifact", { artifact: { row, body: "" } });
    const end = '"}}\n';
    yield line.slice(0, -end.length);
    for await (const piece of body === undefined ? readBody(row) : splitBody(body)) yield toBase64(piece);
    yield end;
  }
}

/** Lists the lines of all rows except artifacts. */
function* listRowLines({
  namespaces,
  runs,
  events,
  artifacts: _,
  outlines = [],
  requests = [],
  writtenBy,
  ...thread
}: ThreadExport): Generator<string, void> {
  yield `${JSON.stringify({ format: exportFormat, version: exportVersion, ...thread, by: writtenBy })}\n`;
  for (const outline of outlines) yield toLine("outline", { outline });
  for (const run of runs) yield toLine("run", { run });
  for (const { checkpoints, prunedRanges, effects, interrupts, timers, inbox, ...namespace } of namespaces) {
    yield toLine("namespace", { namespace });
    for (const checkpoint of checkpoints) yield toLine("checkpoint", { checkpoint });
    for (const prunedRange of prunedRanges) yield toLine("prunedRange", { prunedRange });
    for (const effect of effects) yield toLine("effect", { effect });
    for (const interrupt of interrupts) yield toLine("interrupt", { interrupt });
    for (const timer of timers) yield toLine("timer", { timer });
    for (const inboxMessage of inbox) yield toLine("inboxMessage", { inboxMessage });
  }
  for (const request of requests) yield toLine("request", { request });
  for (const event of events) yield toLine("event", { event });
}

function toLine(kind: string, row: object): string {
  return `${JSON.stringify({ row: kind, ...row })}\n`;
}

function* splitBody(body: Uint8Array): Generator<Uint8Array, void> {
  for (let start = 0; start < body.length; start += bodyPieceBytes) yield body.subarray(start, start + bodyPieceBytes);
}
