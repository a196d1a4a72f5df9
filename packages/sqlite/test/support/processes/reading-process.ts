/**
 * Process that knows the file format but not Statewright: reads a thread with better-sqlite3, folds the deltas of its
 * main branch, and prints state, deltas and effects.
 */
import process from "node:process";
import Database from "better-sqlite3";

interface Delta {
  readonly id: number;
  readonly channel: string;
  readonly kind: "append" | "replace" | "patch" | "clear";
  readonly text: string;
}

interface Patch {
  readonly op: "add" | "replace" | "remove";
  readonly path: readonly string[];
  readonly value: unknown;
}

const [file = "", thread = ""] = process.argv.slice(2);
const db = new Database(file, { readonly: true });
const line = db
  .prepare<[string], number>(
    "SELECT b.key FROM branches b JOIN threads t ON b.thread = t.key WHERE t.id = ? AND b.name = 'main'",
  )
  .pluck()
  .get(thread);
const deltas = db
  .prepare<[number | undefined], Delta>(
    "SELECT d.key & 0xffffff AS id, c.name AS channel, d.kind, d.text FROM deltas d JOIN channels c ON d.key >> 24 = c.key WHERE c.branch = ? ORDER BY id, channel",
  )
  .all(line);
const effects = db
  .prepare(
    "SELECT step, task, call AS key, kind, name, effect, state, attempts, idempotency AS idempotencyKey, outcome FROM effects WHERE branch = ? ORDER BY key",
  )
  .all(line);
const checkpoints = db
  .prepare("SELECT key & 0xffffff AS id, step, nodes FROM checkpoints WHERE key >> 24 = ? ORDER BY key")
  .all(line);
db.close();

const state: Record<string, unknown> = {};
for (const { channel, kind, text } of deltas) state[channel] = folded(state[channel], kind, JSON.parse(text));
process.stdout.write(
  JSON.stringify({
    state,
    checkpoints,
    deltas: deltas.map(({ id, channel, kind, text }) => [id, channel, kind, JSON.parse(text)]),
    effects,
  }),
);

function folded(before: unknown, kind: Delta["kind"], change: unknown): unknown {
  if (kind === "replace") return change;
  if (kind === "clear") return undefined;
  if (kind === "append") return [...((before ?? []) as readonly unknown[]), ...(change as readonly unknown[])];
  const value = structuredClone(before);
  for (const { op, path, value: given } of change as readonly Patch[]) {
    const last = path.at(-1) ?? "";
    const place = path.slice(0, -1).reduce((at, key) => (at as Record<string, unknown>)[key], value);
    if (op === "remove") delete (place as Record<string, unknown>)[last];
    else if (op === "add" && Array.isArray(place)) place.splice(Number(last), 0, given);
    else (place as Record<string, unknown>)[last] = given;
  }
  return value;
}
