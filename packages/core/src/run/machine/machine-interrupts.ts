/** Interrupts of a user-written machine: accepted events, and promises in doubt. */
import { type InterruptRow, isOpen } from "../../checkpoint/journal.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import { inDoubtKey } from "../../tool/policy/approval.ts";
import { emit } from "../events/events.ts";
import { listAcceptedTypes } from "../kernel/actor-tree.ts";
import { awaitCommit } from "../session/parts/persistence.ts";
import { getInterruptIdPrefix } from "../session/parts/position.ts";
import type { Session } from "../session/session.ts";
import { actorInDoubt, describeDoubt } from "./doubts.ts";
import type { LoopState } from "./loop-state.ts";

/** Lists the open interrupts: promises in doubt first, then accepted events. */
export function listMachineInterrupts(loop: LoopState): readonly InterruptRow[] {
  return [...listDoubtInterrupts(loop), ...listEventInterrupts(loop)];
}

/** Lists the interrupts about promises in doubt. */
export function listDoubtInterrupts(loop: LoopState): readonly InterruptRow[] {
  return [...loop.running].flatMap(([work, state]) => {
    const doubt = state === "in doubt" ? describeDoubt(loop, work) : undefined;
    if (doubt === undefined) return [];
    const { id, about, payload } = doubt;
    return [{ ...createMachineInterrupt(loop.session, id, inDoubtKey, { node: work.task.node, payload }), about }];
  });
}

function listEventInterrupts({ session, definition, tree }: LoopState): readonly InterruptRow[] {
  const node = session.progress.control.tasks.map((task) => task.node).join(" ");
  const prefix = getInterruptIdPrefix(session.position);
  return listAcceptedTypes(definition, tree).map((type) =>
    createMachineInterrupt(session, `${prefix}${session.position.step}:${type}`, type, { node, payload: null }),
  );
}

function createMachineInterrupt(
  { env, position, progress, journal: { saved } }: Pick<Session, "env" | "position" | "progress" | "journal">,
  id: string,
  key: string,
  { node, payload }: { readonly node: string; readonly payload: unknown },
): InterruptRow {
  return {
    id,
    branch: position.run.branch,
    step: position.step,
    task: progress.control.tasks[0]?.id ?? `${position.step}:0`,
    node,
    key,
    payload: saved === undefined ? "null" : saved.codec.encode(payload, `the payload of the interrupt "${key}"`),
    schema: key === inDoubtKey ? toJsonSchema(actorInDoubt) : undefined,
    raisedAt: env.world.clock.now(),
  };
}

/**
 * Saves the open interrupts of a machine whose promises are running, so that other processes can list and answer
 * them. Each interrupt is saved once per step.
 */
export async function saveOpenInterrupts(loop: LoopState): Promise<void> {
  const { journal, events } = loop.session;
  const { saved } = journal;
  if (saved === undefined) return;
  const interrupts = listMachineInterrupts(loop).filter(({ id }) => !loop.listedIds.has(id));
  if (interrupts.length === 0) return;
  for (const row of interrupts) {
    loop.listedIds.add(row.id);
    saved.interrupts.set(row.id, row);
  }
  await awaitCommit(saved, { interrupts });
  for (const task of new Set(interrupts.map((row) => row.task))) {
    const rows = interrupts.filter((row) => row.task === task);
    emit(events, { type: "task.interrupted", node: rows[0]?.node ?? "", task, keys: rows.map(({ key }) => key) });
  }
}

/** Lists the saved interrupts that are open: a commit with a run row writes them again to keep them listed. */
export function listSavedInterrupts({ session, listedIds }: LoopState): readonly InterruptRow[] {
  return [...(session.journal.saved?.interrupts.values() ?? [])].filter((row) => listedIds.has(row.id) && isOpen(row));
}
