/** Commands that start runs: `run.start` and `state.fork`. */
import { isStatewrightError } from "@statewright/core";
import * as z from "zod";
import type { CallerService, StartedRun, ThreadView } from "../../service/caller-service.ts";
import { isRestingStatus } from "../await-turn.ts";
import { isGiven, type RunBody, runBodySchema } from "../run-request.ts";
import { startWireRun } from "../start-run.ts";
import { type CommandCall, readParams } from "./command-call.ts";
import { CommandError, type CommandResult } from "./command-reply.ts";

const strategies = z.enum(["reject", "interrupt", "rollback", "enqueue"]);

const configSchema = z.looseObject({ configurable: z.record(z.string(), z.unknown()).nullish() });

const startSchema = z.looseObject({
  assistant_id: z.string(),
  multitask_strategy: strategies.nullish(),
  multitaskStrategy: strategies.nullish(),
  config: configSchema.nullish(),
});

const forkSchema = z.looseObject({
  checkpoint_id: z.string(),
  input: z.unknown().optional(),
  config: configSchema.nullish(),
});

/** Starts a run. A thread that does not exist is created; an input for a thread at work waits for its turn. */
export async function startRun(call: CommandCall): Promise<CommandResult> {
  const params = readParams(call, startSchema);
  const { multitask_strategy, multitaskStrategy, ...rest } = params;
  const strategy = multitask_strategy ?? multitaskStrategy ?? "enqueue";
  return toResult(await startFrom(call, { ...rest, multitask_strategy: strategy }));
}

/** Continues the thread from one of its checkpoints on a new branch, with an input or without. */
export async function forkState(call: CommandCall): Promise<CommandResult> {
  const { service, thread } = call;
  const params = readParams(call, forkSchema);
  const { graph } = await service.getThread(thread);
  if (graph === undefined) throw new CommandError("no_such_checkpoint", "The thread has no checkpoint.");
  const started = await startFrom(call, { ...params, assistant_id: graph, multitask_strategy: "reject" });
  const { result, after } = toResult(started);
  return { result: { ...result, thread_id: thread }, after };
}

function toResult({ run, after }: StartedRun): CommandResult {
  return { result: { run_id: run.id }, after };
}

interface StartFields {
  readonly config?: z.infer<typeof configSchema> | null | undefined;
  readonly multitask_strategy: z.infer<typeof strategies>;
  readonly checkpoint_id?: string | undefined;
}

async function startFrom(
  call: CommandCall,
  fields: StartFields & Readonly<Record<string, unknown>>,
): Promise<StartedRun> {
  const { service, thread, hitl } = call;
  const configurable = fields.config?.configurable ?? {};
  checkThread(thread, configurable["thread_id"]);
  const named = configurable["checkpoint_id"];
  const checkpoint = typeof named === "string" && named !== "" ? { checkpoint_id: named } : {};
  const known = await findThread(service, thread);
  const isResting = known !== undefined && isRestingStatus(known.status);
  // A run that waits or has failed is not at work: a new input ends it, and does not wait for it.
  const ends = isResting && isGiven(fields["input"]) && fields.multitask_strategy === "enqueue";
  const body = parseBody({ ...fields, ...checkpoint, ...(ends ? { multitask_strategy: "interrupt" } : {}) });
  return await startWireRun({ service, thread, body: { ...body, if_not_exists: "create" }, hitl });
}

/** Reads the fields that both protocols share. Fields without an effect, such as `stream_mode`, are dropped. */
function parseBody({ stream_mode: _modes, ...fields }: Readonly<Record<string, unknown>>): RunBody {
  const parsed = runBodySchema.safeParse(fields);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new CommandError("invalid_argument", `/params/${issue?.path.join("/") ?? ""}: ${issue?.message ?? "invalid"}.`);
}

/** The path names the thread of a command: another id in its parameters is refused. */
function checkThread(thread: string, given: unknown): void {
  if (!isGiven(given) || given === thread) return;
  throw new CommandError(
    "invalid_argument",
    "/params/config/configurable/thread_id: expected the id of the thread of the path.",
  );
}

async function findThread(service: CallerService, thread: string): Promise<ThreadView | undefined> {
  try {
    return await service.getThread(thread);
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread")) return undefined;
    throw error;
  }
}
