/** Bodies of requests for a run: schema, refusals, and conversion of options. */
import type { Json, JsonObject } from "@statewright/core";
import * as z from "zod";
import { createInputProblem, createRefusal } from "./create-problem.ts";
import { parseStreamModes, type StreamMode } from "./stream-modes.ts";

/** Reference to a checkpoint in a request. */
export interface CheckpointReference {
  readonly checkpoint_id?: string | null | undefined;
  readonly checkpoint_ns?: string | null | undefined;
  readonly thread_id?: string | null | undefined;
}

/** Schema of a reference to a checkpoint. */
export const checkpointSchema: z.ZodType<CheckpointReference> = z.object({
  checkpoint_id: z.string().nullish(),
  checkpoint_ns: z.string().nullish(),
  thread_id: z.string().nullish(),
});

type Fields = Readonly<Record<string, unknown>>;
type NodeNames = "*" | readonly string[];

/** Body of a request for a run. Clients send null for options that they leave out. */
export interface RunBody {
  readonly assistant_id: string;
  readonly thread_id?: string | null | undefined;
  readonly input?: unknown;
  readonly command?:
    | { readonly update?: unknown; readonly resume?: unknown; readonly goto?: unknown }
    | null
    | undefined;
  readonly config?:
    | { readonly configurable?: Fields | null | undefined; readonly metadata?: Fields | null | undefined }
    | null
    | undefined;
  readonly context?: Fields | null | undefined;
  readonly metadata?: Fields | null | undefined;
  readonly stream_mode?: string | readonly string[] | null | undefined;
  readonly stream_subgraphs?: boolean | null | undefined;
  readonly interrupt_before?: NodeNames | null | undefined;
  readonly interrupt_after?: NodeNames | null | undefined;
  readonly checkpoint?: CheckpointReference | null | undefined;
  readonly checkpoint_id?: string | null | undefined;
  readonly multitask_strategy?: "reject" | "interrupt" | "rollback" | "enqueue" | null | undefined;
  readonly on_completion?: "delete" | "keep" | null | undefined;
  readonly on_disconnect?: "cancel" | "continue" | null | undefined;
  readonly if_not_exists?: "create" | "reject" | null | undefined;
  readonly webhook?: unknown;
  readonly after_seconds?: unknown;
}

const record = z.record(z.string(), z.unknown());
const nodeNames = z.union([z.literal("*"), z.array(z.string())]).nullish();

/** Schema of a request for a run. Unknown keys are dropped. */
export const runBodySchema: z.ZodType<RunBody> = z.object({
  assistant_id: z.string(),
  thread_id: z.string().nullish(),
  input: z.unknown().optional(),
  command: z
    .object({ update: z.unknown().optional(), resume: z.unknown().optional(), goto: z.unknown().optional() })
    .nullish(),
  config: z.object({ configurable: record.nullish(), metadata: record.nullish() }).nullish(),
  context: record.nullish(),
  metadata: record.nullish(),
  stream_mode: z.union([z.string(), z.array(z.string())]).nullish(),
  stream_subgraphs: z.boolean().nullish(),
  interrupt_before: nodeNames,
  interrupt_after: nodeNames,
  checkpoint: checkpointSchema.nullish(),
  checkpoint_id: z.string().nullish(),
  multitask_strategy: z.enum(["reject", "interrupt", "rollback", "enqueue"]).nullish(),
  on_completion: z.enum(["delete", "keep"]).nullish(),
  on_disconnect: z.enum(["cancel", "continue"]).nullish(),
  if_not_exists: z.enum(["create", "reject"]).nullish(),
  webhook: z.unknown().optional(),
  after_seconds: z.unknown().optional(),
});

/** Refuses options without an effect on this server: an ignored webhook would be a lie. */
export function refuseUnsupported(body: RunBody): void {
  if (isGiven(body.webhook))
    throw createRefusal("webhook: this server calls no webhooks. Use the notifications of the engine.");
  if (isGiven(body.after_seconds))
    throw createRefusal("after_seconds: this server delays no runs of this protocol. Use a schedule.");
  if (isGiven(body.command?.goto))
    throw createRefusal("command.goto: the edges of the graph decide which node runs next. Use command.update.");
  if (isGiven(body.checkpoint?.checkpoint_ns) && body.checkpoint?.checkpoint_ns !== "")
    throw createRefusal("checkpoint.checkpoint_ns: a run begins in the outermost graph. Use an empty checkpoint_ns.");
}

/** Throws a problem for a body that names another thread than the path. */
export function checkThreadIds(thread: string, { thread_id: id, checkpoint, config }: RunBody): void {
  checkThreadId(thread, "/thread_id", id);
  checkThreadId(thread, "/checkpoint/thread_id", checkpoint?.thread_id);
  checkThreadId(thread, "/config/configurable/thread_id", config?.configurable?.["thread_id"]);
}

/** Throws a problem for the id of another thread than that of the path. */
export function checkThreadId(thread: string, pointer: string, id: unknown): void {
  if (!isGiven(id) || id === thread) return;
  throw createInputProblem(pointer, "expected the thread of the path, or no thread_id");
}

/** Returns true for a value that a client has given: clients send null for options that they leave out. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Returns the stream modes of a run. Default: `values`. */
export function listStreamModes({ stream_mode: given }: RunBody): readonly StreamMode[] {
  const modes = parseStreamModes(typeof given === "string" ? [given] : (given ?? []));
  return modes.length === 0 ? ["values"] : modes;
}

/** Returns the id of the checkpoint at which a run begins; undefined for the newest. */
export function findCheckpointId({ checkpoint, checkpoint_id: id }: RunBody): string | undefined {
  return checkpoint?.checkpoint_id ?? id ?? undefined;
}

/** Returns the nodes before and after which a run pauses. `*` is every node. */
export function toBreakpoints(
  { interrupt_before: before, interrupt_after: after }: RunBody,
  nodes: readonly string[],
): { readonly before?: readonly string[]; readonly after?: readonly string[] } | undefined {
  const toNodes = (given: NodeNames): readonly string[] => (given === "*" ? nodes : given);
  if (!isGiven(before) && !isGiven(after)) return undefined;
  return {
    ...(isGiven(before) ? { before: toNodes(before ?? []) } : {}),
    ...(isGiven(after) ? { after: toNodes(after ?? []) } : {}),
  };
}

/** Keys of `configurable` that the protocol itself uses. */
const ownKeys: ReadonlySet<string> = new Set([
  "thread_id",
  "checkpoint_id",
  "checkpoint_ns",
  "checkpoint_map",
  "run_id",
]);

/** Returns the context that a client asks for; undefined for none. Only `contextOf` reads it. */
export function toAskedContext({ config, context }: RunBody): Json | undefined {
  const configurable = Object.entries(config?.configurable ?? {}).filter(([key]) => !ownKeys.has(key));
  const asked = { ...Object.fromEntries(configurable), ...context };
  return Object.keys(asked).length === 0 ? undefined : toJson(asked);
}

const maxMetadataBytes = 16 * 2 ** 10;

/**
 * Returns the metadata of a run: plain values of the client under `lg`, and its stream modes under `lgStream`, which a
 * client that joins the run without modes receives. Throws a problem for metadata above 16 KiB.
 */
export function toRunMetadata(body: RunBody): JsonObject {
  const given = { ...body.config?.metadata, ...body.metadata };
  const plain = Object.entries(given).filter(([, value]) => isPlain(value));
  const lg = Object.fromEntries(plain);
  if (JSON.stringify(lg).length > maxMetadataBytes)
    throw createInputProblem("/metadata", `expected at most ${maxMetadataBytes} bytes of metadata`);
  const lgStream = { modes: [...listStreamModes(body)], subgraphs: body.stream_subgraphs === true };
  return { lg: toJson(lg), lgStream };
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

/** Values of a parsed body are JSON. */
function toJson(value: unknown): Json {
  return value as Json;
}
