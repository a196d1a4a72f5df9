/** Routes that copy, export and import whole threads. */
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { importQuery, thread, threadCopy } from "../schemas/threads.ts";
import { streamBytes } from "../stream-bytes.ts";
import { toThread } from "../to-wire.ts";

/** Maximum bytes of an imported thread. */
const maxImportBytes = 64 * 2 ** 20;

/** Media type of an exported thread: a line of JSON for each row. */
const exportType = "application/x-ndjson";

/** Creates the routes that move threads. */
export function createMoveRoutes(): readonly ApiRoute[] {
  return [
    defineRoute({
      ...{ method: "POST", path: "/threads/:thread/copies", action: "thread.write", id: "copyThread", tag: "threads" },
      summary: "Copy a thread with its whole history",
      body: threadCopy,
      answers: { 201: { description: "The copy", schema: thread, headers: ["location"] } },
      handle: async ({ service, params, base }, { body }) => {
        const copy = await service.copyThread(params["thread"] ?? "", body.id);
        return createJson(toThread(copy), { status: 201, headers: { location: `${base}/threads/${copy.id}` } });
      },
    }),
    defineRoute({
      ...{ method: "GET", path: "/threads/:thread/export", action: "admin", id: "exportThread", tag: "threads" },
      summary: "Export a thread with private channels, for an import. Needs the scope admin.",
      answers: { 200: { description: "Lines of JSON", mediaType: exportType, headers: ["content-disposition"] } },
      handle: async ({ service, params }) => {
        const chunks = await service.exportThread(params["thread"] ?? "");
        return new Response(streamBytes(encodeChunks(chunks)), {
          headers: {
            "content-type": exportType,
            "content-disposition": `attachment; filename="thread.jsonl"`,
            "cache-control": "no-store",
            "x-content-type-options": "nosniff",
          },
        });
      },
    }),
    defineRoute({
      ...{ method: "POST", path: "/threads/imports", action: "admin", id: "importThread", tag: "threads" },
      summary: "Import an exported thread. Needs the scope admin.",
      query: importQuery,
      bodyType: exportType,
      maxBodyBytes: maxImportBytes,
      answers: { 201: { description: "The imported thread", schema: thread, headers: ["location"] } },
      handle: async (call, { query }) => {
        const text = splitText(await call.readBytes());
        const imported = await call.service.importThread(text, { id: query.id, maxBytes: maxImportBytes });
        const headers = { location: `${call.base}/threads/${imported.id}` };
        return createJson(toThread(imported), { status: 201, headers });
      },
    }),
  ];
}

async function* encodeChunks(chunks: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const chunk of chunks) yield encoder.encode(chunk);
}

/** Bytes that are decoded at once. */
const pieceBytes = 2 ** 20;

async function* splitText(bytes: Uint8Array): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for (let start = 0; start < bytes.byteLength; start += pieceBytes)
    yield decoder.decode(bytes.subarray(start, start + pieceBytes), { stream: true });
  yield decoder.decode();
}
