/**
 * Rules for threads as rows of their own, shared by all stores: creation, change of title and metadata, tenants, search,
 * graph versions and their writers, and the id prefixes of branches.
 */
import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isData, isPlainObject, type JsonObject } from "../base/json.ts";
import { checkChoice, checkNumber, checkOptions, listOptionNames, requireAny } from "../base/options.ts";
import type { Codec } from "../state/codec.ts";
import { type CheckpointRow, type RunStatus, runStatuses } from "./checkpoint.ts";
import { parseControl } from "./control.ts";
import type { GraphVersion, ThreadExport } from "./export/thread-export.ts";
import type { StatusCounts, ThreadPatch, ThreadRow, ThreadWrite } from "./store.ts";

/** Fields of a thread that its creator sets; absent fields are not set. */
export type ThreadDetails = Pick<ThreadRow, "title" | "metadata" | "tenant" | "owner">;

/** Maximum length of a title, and of the ids of tenants and owners, in UTF-16 units. */
const maxTitleLength = 1_000;
const maxPartyLength = 256;

const writeKeys = listOptionNames<ThreadWrite>({
  thread: true,
  at: true,
  title: true,
  metadata: true,
  tenant: true,
  owner: true,
  keySalt: true,
  ifExists: true,
});
const patchKeys = listOptionNames<ThreadPatch>({ at: true, title: true, metadata: true });

/** Throws `invalid_id` or `invalid_option` for an invalid thread to create. */
export function checkThreadWrite(write: ThreadWrite): void {
  checkOptions("createThread", write, writeKeys);
  const { thread, at, title, metadata, tenant, owner, ifExists = "throw" } = write;
  checkId("thread", thread);
  checkNumber("createThread", { at: at ?? null }, 0);
  if (title !== undefined) checkTitle("createThread", title);
  checkThreadMetadata("createThread", metadata);
  checkParties("createThread", { tenant, owner });
  checkChoice("createThread", { ifExists }, ["throw", "keep"]);
}

/** Throws `invalid_id` or `invalid_option` for an invalid change of a thread, or one without a change. */
export function checkThreadPatch(thread: string, patch: ThreadPatch): void {
  checkOptions("updateThread", patch, patchKeys);
  const { at, title, metadata } = patch;
  checkId("thread", thread);
  checkNumber("updateThread", { at: at ?? null }, 0);
  requireAny("updateThread", { title, metadata });
  if (title !== undefined && title !== null) checkTitle("updateThread", title);
  checkThreadMetadata("updateThread", metadata);
}

function checkTitle(where: string, title: unknown): void {
  if (isText(title, maxTitleLength)) return;
  const expected = `a text of 1 to ${maxTitleLength} characters`;
  throw invalidOption({ where, option: "title", expected, got: title });
}

function checkThreadMetadata(where: string, metadata: unknown): void {
  if (metadata === undefined || (isPlainObject(metadata) && isData(metadata))) return;
  throw invalidOption({ where, option: "metadata", expected: "an object of plain data", got: metadata });
}

/** Throws `invalid_option` for an invalid id of a tenant or an owner. */
export function checkParties(where: string, parties: Readonly<Record<"tenant" | "owner", unknown>>): void {
  for (const [option, value] of Object.entries(parties)) {
    if (value === undefined || isText(value, maxPartyLength)) continue;
    throw invalidOption({ where, option, expected: `a text of 1 to ${maxPartyLength} characters`, got: value });
  }
}

function isText(value: unknown, maxLength: number): boolean {
  return typeof value === "string" && value.length >= 1 && value.length <= maxLength && value.isWellFormed();
}

/**
 * Throws `invalid_option` when a call names a tenant other than that of its thread; a thread without a tenant refuses
 * every tenant. A call without a tenant is allowed. The message does not name the tenant of the thread.
 */
export function checkTenant(where: string, thread: Pick<ThreadRow, "id" | "tenant">, tenant: string | undefined): void {
  if (tenant === undefined || tenant === thread.tenant) return;
  throw invalidOption({
    where,
    option: "tenant",
    expected: `the tenant of thread "${thread.id}"`,
    got: tenant,
    fix: "Use a thread of this tenant: the tenant of a thread is set when the thread is created, and never changes",
    place: { thread: thread.id },
  });
}

/** Returns the details of a new thread. */
export function toThreadDetails({ title, metadata, tenant, owner }: ThreadDetails): ThreadDetails {
  return toDetails({ title, tenant, owner }, mergeMetadata({}, metadata));
}

/** Returns the details of a thread after a change. */
export function applyThreadPatch(details: ThreadDetails, { title, metadata }: ThreadPatch): ThreadDetails {
  const newTitle = title === undefined ? details.title : (title ?? undefined);
  return toDetails({ ...details, title: newTitle }, mergeMetadata(details.metadata ?? {}, metadata));
}

function toDetails({ title, tenant, owner }: Omit<ThreadDetails, "metadata">, metadata: JsonObject): ThreadDetails {
  return {
    ...(title === undefined ? {} : { title }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(owner === undefined ? {} : { owner }),
  };
}

/** Sets keys; removes those with the value null. The result shares no object with the arguments. */
function mergeMetadata(before: JsonObject, changes: JsonObject = {}): JsonObject {
  const merged = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== null && value !== undefined);
  return JSON.parse(JSON.stringify(Object.fromEntries(merged))) as JsonObject;
}

/** Returns the JSON texts of the metadata values that a search text equals: the text, and a number or a boolean. */
export function listSearchValues(search: string): readonly string[] {
  const isNumber = Number.isFinite(Number(search)) && JSON.stringify(Number(search)) === search;
  const isBoolean = search === "true" || search === "false";
  return isNumber || isBoolean ? [JSON.stringify(search), search] : [JSON.stringify(search)];
}

/** Returns true if a thread matches the text of a search field. */
export function matchesSearch({ id, graph, metadata = {} }: ThreadRow, search: string): boolean {
  if (id.startsWith(search) || graph === search) return true;
  const values = listSearchValues(search);
  return Object.values(metadata).some((value) => values.includes(JSON.stringify(value)));
}

/** Returns the counts of all statuses: the given ones, and 0 for the others. */
export function toStatusCounts(counts: ReadonlyMap<RunStatus, number>): StatusCounts {
  return Object.fromEntries(runStatuses.map((status) => [status, counts.get(status) ?? 0])) as StatusCounts;
}

/** Lists the graph versions that the rows of a thread name, without duplicates: of its checkpoints and of its writer. */
export function listGraphVersions({
  namespaces,
  writtenBy,
}: Pick<ThreadExport, "namespaces" | "writtenBy">): readonly GraphVersion[] {
  const versions = new Map<string, GraphVersion>();
  if (writtenBy !== undefined) versions.set(toVersionKey(writtenBy), writtenBy);
  for (const { checkpoints } of namespaces)
    for (const { writtenBy: version } of checkpoints) versions.set(toVersionKey(version), version);
  return [...versions.values()];
}

/** Returns a text that is equal for equal graph versions only. */
export function toVersionKey({ graph, version, shape }: GraphVersion): string {
  return JSON.stringify([graph, version, shape]);
}

/** First branch of a thread. */
const mainBranch = "main";

/**
 * Returns the prefix of message and interrupt ids made on a branch: its name and a dot, as in `b2.0:0:model`; empty for
 * `main`. An id continues with a digit. Dots of the name are doubled, and a name that begins with a digit gets a
 * leading dot: message and interrupt ids of two branches of a thread are never equal.
 */
export function toBranchPrefix(branch: string): string {
  if (branch === mainBranch) return "";
  return `${/^\d/.test(branch) ? "." : ""}${branch.replaceAll(".", "..")}.`;
}

/** Returns the id without the prefix of the branch. */
export function removeBranchPrefix(id: string, branch: string): string {
  const prefix = toBranchPrefix(branch);
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}

/**
 * Throws `graph_changed` when another graph wrote this checkpoint, either the root graph of the thread or an inner
 * graph.
 */
export function checkWriter(
  { id: thread, graph: outermost }: Pick<ThreadRow, "id" | "graph">,
  { id, branch, control }: Pick<CheckpointRow, "id" | "branch" | "control">,
  codec: Codec,
  { name }: { readonly name: string },
): void {
  if (!branch.includes("/")) {
    checkThread({ id: thread, graph: outermost }, { name });
    return;
  }
  const { caller } = parseControl(codec, { id, branch, control });
  if (caller?.graph !== undefined && caller.graph !== name)
    throw createInnerWriterError(thread, id, { ...caller, name });
}

function createInnerWriterError(
  thread: string,
  id: number,
  { graph, nesting, name }: { readonly graph?: string; readonly nesting: string; readonly name: string },
): StatewrightError {
  return new StatewrightError("graph_changed", {
    what: `checkpoint ${id} of thread "${thread}" was written by graph "${graph}" at "${nesting}"`,
    next: "Read the checkpoint with that graph",
    place: { graph: name, thread },
  });
}

/** Throws `graph_changed` when a thread belongs to another graph. A thread without a run belongs to no graph yet. */
export function checkThread(
  { id: thread, graph: writer }: Pick<ThreadRow, "id" | "graph">,
  { name }: { readonly name: string },
): void {
  if (writer === undefined || writer === name) return;
  throw new StatewrightError("graph_changed", {
    what: `thread "${thread}" was written by graph "${writer}"`,
    next: `Use that graph; to read an inner graph "${name}", pass its position in nesting`,
    place: { graph: name, thread },
  });
}
