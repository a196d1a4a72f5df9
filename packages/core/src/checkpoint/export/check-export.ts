/** Whether the rows of an image are one thread: what comes from outside must hang together before a store takes it. */
import { checkId } from "../../base/ids.ts";
import { isChildLine } from "../rules.ts";
import type { LineImage, ThreadImage } from "./thread-export.ts";

/** So many checkpoints a thread can have in any store. */
const largestCheckpoint = 2 ** 24 - 1;

/** Throws what `refuse` makes of the first thing that does not hang together, and `invalid_id` for a name outside the grammar. */
export function checkImage(image: ThreadImage, refuse: (what: string) => Error): void {
  const lines = new Map<string, LineImage>();
  const lineOf = new Map<number, string>();
  checkRuns(image, refuse);
  for (const line of image.lines) {
    checkName(line, lines, refuse);
    lines.set(line.name, line);
    if (line.from !== undefined && !lineOf.has(line.from))
      throw refuse(`the line "${line.name}" goes on from checkpoint ${line.from}, which is not there`);
    checkLine(image, line, lineOf, refuse);
  }
  const runs = new Map(image.runs.map((run) => [run.id, run]));
  if (!lines.has(image.headBranch) || isChildLine(image.headBranch))
    throw refuse(`the head branch "${image.headBranch}" is not there`);
  for (const { id, branch } of image.runs) {
    if (!lines.has(branch) || isChildLine(branch)) throw refuse(`the run "${id}" is on a branch that is not there`);
  }
  for (const { name, run } of [{ name: "", run: image.run }, ...image.lines]) {
    const newest = run === undefined ? undefined : runs.get(run);
    if (run !== undefined && (newest === undefined || (name !== "" && newest.branch !== name)))
      throw refuse(`the newest run "${run}" is not there`);
  }
  let last = 0;
  for (const { seq, branch } of image.events) {
    if (seq <= last || seq > image.seq || !lines.has(branch)) throw refuse(`the event ${seq} has no place`);
    last = seq;
  }
}

function checkRuns({ runs }: ThreadImage, refuse: (what: string) => Error): void {
  const keys = new Set<string>();
  for (const { id, key, status, input } of runs) {
    checkId("run", id);
    for (const each of key === undefined ? [`id ${id}`] : [`id ${id}`, `key ${key}`]) {
      if (keys.has(each)) throw refuse(`two runs have the ${each}`);
      keys.add(each);
    }
    if (status === "queued" && input === undefined) throw refuse(`the queued run "${id}" has no input`);
  }
}

function checkName({ name }: LineImage, before: ReadonlyMap<string, LineImage>, refuse: (what: string) => Error): void {
  for (const segment of name.split("/")) checkId("segment of a line", segment);
  if (before.has(name)) throw refuse(`the line "${name}" stands twice`);
  if (isChildLine(name) && !before.has(name.slice(0, name.lastIndexOf("/"))))
    throw refuse(`the line "${name}" stands without its parent line`);
}

function checkLine(
  image: ThreadImage,
  line: LineImage,
  lineOf: Map<number, string>,
  refuse: (what: string) => Error,
): void {
  const { name, checkpoints, cuts, effects, interrupts, awaited, timers, letters } = line;
  let before = line.from;
  let lastCut = 0;
  for (const { row, deltas } of checkpoints) {
    const cut = cuts.findLast(({ id }) => id < row.id && id > (before ?? 0));
    const fits =
      row.branch === name && row.id > (before ?? 0) && row.id <= Math.min(image.checkpoint, largestCheckpoint);
    if (!fits || row.seq > image.seq || row.parent !== (cut?.id ?? before) || lineOf.has(row.id))
      throw refuse(`checkpoint ${row.id} does not continue the line "${name}"`);
    if (new Set(deltas.map(({ channel }) => channel)).size !== deltas.length)
      throw refuse(`checkpoint ${row.id} changes a channel twice`);
    lineOf.set(row.id, name);
    before = row.id;
  }
  for (const { id, seq, deltas } of cuts) {
    if (
      id <= lastCut ||
      lineOf.has(id) ||
      seq > image.seq ||
      deltas.some(({ checkpoint }) => checkpoint > id || lineOf.has(checkpoint))
    )
      throw refuse(`the cut at checkpoint ${id} has no place`);
    lastCut = id;
  }
  const unique: readonly (readonly string[])[] = [
    effects.map(({ step, task, key }) => JSON.stringify(["effect", step, task, key])),
    interrupts.map(({ id }) => JSON.stringify(["question", id])),
    timers.map(({ id }) => JSON.stringify(["timer", id])),
    letters.map(({ id, taken }) => JSON.stringify(["letter", id, taken])),
    cuts.flatMap(({ deltas }) =>
      deltas.map(({ channel, checkpoint }) => JSON.stringify(["change", channel, checkpoint])),
    ),
  ];
  for (const ids of unique) {
    if (new Set(ids).size !== ids.length) throw refuse(`a row of the line "${name}" stands twice`);
  }
  const questions = new Set(interrupts.map(({ id }) => id));
  if (awaited.some((id) => !questions.has(id)))
    throw refuse(`the line "${name}" waits for a question that is not there`);
  if (letters.length > 0 && isChildLine(name)) throw refuse(`the line "${name}" has an inbox, and is no branch`);
  if ([...interrupts, ...timers, ...letters].some(({ branch }) => branch !== name))
    throw refuse(`a row of another line stands in the line "${name}"`);
}
