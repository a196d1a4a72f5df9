/** Routes of artifacts and of uploaded files. */
import type { ArtifactView } from "../../service/native/artifacts.ts";
import { type ApiRoute, createJson, defineRoute } from "../define-route.ts";
import { parseRange } from "../parse-range.ts";
import { formatEtag, matchesEtag } from "../request-headers.ts";
import { createFileTypeProblem, createRequestProblem } from "../request-problems.ts";
import { artifactPage, artifactQuery, file, fileQuery } from "../schemas/artifacts.ts";
import { streamBytes } from "../stream-bytes.ts";
import { toArtifact, toFile, toPage } from "../to-wire.ts";

/** Creates the routes of artifacts and files. */
export function createArtifactRoutes(): readonly ApiRoute[] {
  return [createListRoute(), createBodyRoute(), createFileRoute()];
}

function createListRoute(): ApiRoute {
  return defineRoute({
    ...{ method: "GET", path: "/threads/:thread/artifacts", action: "thread.read", id: "listArtifacts" },
    ...{ tag: "artifacts", summary: "Large outputs of tool calls, oldest first" },
    query: artifactQuery,
    answers: { 200: { description: "A page of artifacts", schema: artifactPage } },
    handle: async ({ service, params }, { query }) =>
      createJson(toPage(await service.listArtifacts(params["thread"] ?? "", query), toArtifact)),
  });
}

function createBodyRoute(): ApiRoute {
  const body = { mediaType: "*/*", headers: ["etag", "content-disposition"] };
  return defineRoute({
    ...{ method: "GET", path: "/threads/:thread/artifacts/:artifact", action: "thread.read", id: "readArtifact" },
    ...{ tag: "artifacts", summary: "Body of an artifact, by key or handle, as a download" },
    headers: ["range", "if-none-match"],
    answers: {
      200: { description: "The whole body", ...body },
      206: { description: "The range of the header Range", ...body },
      304: { description: "The body is that of `If-None-Match`" },
      416: { description: "The range begins after the end" },
    },
    handle: async ({ service, params, request }) => {
      const [thread, key] = [params["thread"] ?? "", params["artifact"] ?? ""];
      const artifact = await service.getArtifact(thread, key);
      const headers = createBodyHeaders(artifact);
      if (matchesEtag(request.headers.get("if-none-match"), headers.etag))
        return new Response(null, { status: 304, headers: { etag: headers.etag } });
      const range = parseRange(request.headers.get("range"), artifact.bytes);
      if (range === "unsatisfiable")
        return new Response(null, { status: 416, headers: { "content-range": `bytes */${artifact.bytes}` } });
      const { offset, bytes } = range ?? { offset: 0, bytes: artifact.bytes };
      const pieces = await service.readArtifact(thread, artifact.key, { offset, bytes });
      const length = { "content-length": String(bytes) };
      if (range === undefined) return new Response(streamBytes(pieces), { headers: { ...headers, ...length } });
      const place = { "content-range": `bytes ${offset}-${offset + bytes - 1}/${artifact.bytes}` };
      return new Response(streamBytes(pieces), { status: 206, headers: { ...headers, ...length, ...place } });
    },
  });
}

/** Headers of a body: a page never shows it in place, whatever its media type is. */
function createBodyHeaders({ key, name, mimeType }: ArtifactView) {
  const type = /^[\w.+-]+\/[\w.+-]+(?:;\s*charset=[\w-]+)?$/.test(mimeType) ? mimeType : "application/octet-stream";
  const plain = name.replace(/[^\x20-\x7e]|["\\]/g, "_");
  return {
    "content-type": type,
    "content-disposition": `attachment; filename="${plain}"; filename*=UTF-8''${encodeExtended(name)}`,
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "accept-ranges": "bytes",
    "cache-control": "private, max-age=31536000, immutable",
    etag: formatEtag(key),
  };
}

/** Encodes a name by RFC 8187. */
function encodeExtended(name: string): string {
  const wellFormed = name.toWellFormed();
  return encodeURIComponent(wellFormed).replace(
    /['()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Media types that a page of another site can send without a preflight request. */
const simpleTypes: ReadonlySet<string> = new Set([
  "",
  "text/plain",
  "multipart/form-data",
  "application/x-www-form-urlencoded",
]);

function createFileRoute(): ApiRoute {
  return defineRoute({
    ...{ method: "POST", path: "/threads/:thread/files", action: "thread.write", id: "uploadFile", tag: "artifacts" },
    summary: "Upload a file for a message of the thread",
    query: fileQuery,
    bodyType: "application/octet-stream",
    answers: { 201: { description: "The file, with the block for a message", schema: file } },
    handle: async (call, { query }) => {
      const sent = (call.request.headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
      if (simpleTypes.has(sent)) throw createFileTypeProblem(sent);
      const mimeType = query.mimeType ?? sent;
      if (!/^[\w.+-]+\/[\w.+-]+$/.test(mimeType))
        throw createRequestProblem({ detail: "mimeType: expected a media type such as image/png." });
      const bytes = await call.readBytes();
      if (bytes.byteLength === 0) throw createRequestProblem({ detail: "The file is empty." });
      const saved = await call.service.saveFile(call.params["thread"] ?? "", { bytes, mimeType, name: query.name });
      return createJson(toFile(saved), { status: 201 });
    },
  });
}
