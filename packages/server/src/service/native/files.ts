/** Uploaded files of a thread, until a message names them. */
import { maxFileBytes, toBase64 } from "@statewright/core/adapter";
import * as z from "zod";
import type { CallerScope, OwnThread } from "../caller-scope.ts";
import { createInvalidRequestProblem } from "../service-problems.ts";
import { createTooLargeProblem, createTooManyFilesProblem, createUnknownFileProblem } from "./native-problems.ts";

/** Uploaded file. */
export interface FileView {
  readonly id: string;
  readonly name?: string | undefined;
  readonly mimeType: string;
  readonly bytes: number;
  /** Time of the deletion, in milliseconds since the epoch. */
  readonly expiresAt: number;
}

/** File to save. */
export interface FileWrite {
  readonly bytes: Uint8Array;
  readonly mimeType: string;
  readonly name?: string | undefined;
}

/** Acts on the files of a thread. */
export interface FileActs {
  /** Saves a file for messages of a thread. The same file again returns the same id. Creates no thread. */
  saveFile(thread: string, file: FileWrite): Promise<FileView>;
  /**
   * Returns a value whose blocks with `uploaded: { thread: id }` hold the bytes of the file in place of the id. Throws
   * `unknown_file` (422) for a file that this thread does not have.
   */
  insertFiles<Value>(thread: string, value: Value): Promise<Value>;
}

/** Milliseconds for which a file waits for its message. */
const timeToLiveMs = 24 * 3_600_000;

/** Maximum number of waiting files of a thread. */
const maxFiles = 100;

const savedFile = z.object({
  mimeType: z.string(),
  name: z.string().optional(),
  bytes: z.number(),
  data: z.string(),
});

type SavedFile = z.infer<typeof savedFile>;

/** Acts on the files of a thread, with those that only the service uses. */
export interface AllFileActs extends FileActs {
  /** Deletes the files of a thread that was deleted. */
  deleteFiles(thread: string): Promise<void>;
}

/** Creates the acts on the files of a caller's threads. The files are rows of the long-term store. */
export function createFileActs(scope: CallerScope): AllFileActs {
  return {
    saveFile: (thread, file) => saveFile(scope, thread, file),
    insertFiles: async <Value>(thread: string, value: Value) => {
      const ids = listFileIds(value);
      if (ids.size === 0) return value;
      const own = await scope.requireThread(thread, { action: "thread.read" });
      const files = await loadFiles(scope, own, ids);
      return insertData(value, files) as Value;
    },
    deleteFiles: async (thread) => {
      const namespace = toNamespace(scope.toStoredId(thread));
      const rows = await listRows(scope, namespace);
      if (rows.length === 0) return;
      const changes = rows.map(({ key }) => ({ drop: { namespace, key } }));
      await scope.store.longTerm.write(changes, scope.world.clock.now());
    },
  };
}

function toNamespace(stored: string): string {
  return `statewright.server/files/${stored}/`;
}

async function listRows({ store, world }: CallerScope, namespace: string) {
  return await store.longTerm.page({ namespace, deep: false, at: world.clock.now(), limit: maxFiles });
}

async function saveFile(scope: CallerScope, thread: string, file: FileWrite): Promise<FileView> {
  const { stored } = await scope.requireThread(thread, { action: "thread.write", changes: true });
  const { store, world, codec } = scope;
  const { bytes, mimeType, name } = file;
  if (bytes.byteLength === 0) throw createInvalidRequestProblem("The file is empty.");
  const id = await computeFileId(file);
  const namespace = toNamespace(stored);
  const rows = await listRows(scope, namespace);
  if (rows.length >= maxFiles && !rows.some(({ key }) => key === id)) throw createTooManyFilesProblem(maxFiles);
  const now = world.clock.now();
  const expiresAt = now + timeToLiveMs;
  const saved: SavedFile = {
    mimeType,
    bytes: bytes.byteLength,
    data: toBase64(bytes),
    ...(name === undefined ? {} : { name }),
  };
  const value = codec.encode(saved, "an uploaded file");
  await store.longTerm.write([{ put: { namespace, key: id, value, updatedAt: now, expiresAt } }], now);
  return { id, name, mimeType, bytes: bytes.byteLength, expiresAt };
}

/** Id of a file: a hash of its content, its type and its name. */
async function computeFileId({ bytes, mimeType, name }: FileWrite): Promise<string> {
  const head = new TextEncoder().encode(JSON.stringify([mimeType, name ?? null]));
  const digest = await crypto.subtle.digest("SHA-256", new Uint8Array([...head, 0]).buffer);
  const content = await crypto.subtle.digest("SHA-256", new Uint8Array(bytes));
  const both = await crypto.subtle.digest(
    "SHA-256",
    new Uint8Array([...new Uint8Array(digest), ...new Uint8Array(content)]),
  );
  const hex = [...new Uint8Array(both)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `file_${hex.slice(0, 40)}`;
}

/** Returns the id of the file that a block names; undefined for another value. */
function findFileId(value: object): string | undefined {
  if (!("type" in value) || (value.type !== "image" && value.type !== "file") || !("uploaded" in value))
    return undefined;
  const { uploaded } = value;
  if (typeof uploaded !== "object" || uploaded === null || !("thread" in uploaded)) return undefined;
  return typeof uploaded.thread === "string" ? uploaded.thread : undefined;
}

function listFileIds(value: unknown, ids: Set<string> = new Set()): ReadonlySet<string> {
  if (typeof value !== "object" || value === null) return ids;
  const id = findFileId(value);
  if (id !== undefined) ids.add(id);
  else for (const item of Object.values(value)) listFileIds(item, ids);
  return ids;
}

async function loadFiles(
  { store, world, codec }: CallerScope,
  { stored }: OwnThread,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, SavedFile>> {
  const namespace = toNamespace(stored);
  const files = new Map<string, SavedFile>();
  let total = 0;
  for (const id of ids) {
    const row = /^file_[0-9a-f]{40}$/.test(id)
      ? await store.longTerm.get({ namespace, key: id }, world.clock.now())
      : undefined;
    if (row === undefined) throw createUnknownFileProblem(id);
    const file = savedFile.parse(codec.decode(row.value));
    total += file.bytes;
    if (total > maxFileBytes)
      throw createTooLargeProblem(`The files of a request: expected at most ${maxFileBytes} bytes, got ${total}.`);
    files.set(id, file);
  }
  return files;
}

/** Returns a copy of a value whose blocks hold the bytes of their files. */
function insertData(value: unknown, files: ReadonlyMap<string, SavedFile>): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => insertData(item, files));
  const file = files.get(findFileId(value) ?? "");
  if (file === undefined)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, insertData(item, files)]));
  const { mimeType, data, name } = file;
  if (mimeType.startsWith("image/")) return { type: "image", mimeType, data };
  return { type: "file", mimeType, data, ...(name === undefined ? {} : { name }) };
}
