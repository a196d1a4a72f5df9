/** Prints a thread as `git log -p` prints a repository; with a JSON Pointer who wrote that value, on every branch. */
import { sqliteStore } from "statewright";
import { blame, getBranchTree, getSuperstep, isSuperstep, listSupersteps } from "statewright/inspect";

const [file = "", thread = "", path] = process.argv.slice(2);
const store = sqliteStore(file);
const toShort = (value: unknown): string => (JSON.stringify(value) ?? "").slice(0, 100);

async function printSuperstep(checkpoint: number): Promise<void> {
  const found = await getSuperstep(store, { thread, checkpoint, redact: [] });
  if (found === undefined) return;
  const { id, branch, within = "", at, run, source, nodes, tasks, effectRows, asked, patch, before } = found;
  console.log(`\nsuperstep ${id}  ${branch} ${within}  ${new Date(at).toISOString()}  ${run}`);
  console.log(`    ${nodes.join(" + ") || source}  tasks ${tasks.map((task) => task.id).join(" ")}`);
  const calls = effectRows.filter(({ kind }) => kind !== "task");
  for (const { kind, name, state, attempts, processes = 1, attemptLog = [] } of calls) {
    const reasons = attemptLog.flatMap(({ error }) => error ?? []).join(", ") || "none";
    console.log(`    ${kind} ${name}  ${state}  attempts ${attempts}, processes ${processes}, failures: ${reasons}`);
  }
  for (const { key, answer, answeredBy = "nobody" } of asked)
    console.log(`    interrupt ${key}  answered by ${answeredBy}: ${toShort(answer)}`);
  for (const [index, op] of patch.entries()) {
    if (op.op !== "add") console.log(`  - ${op.path}  ${toShort(before[index])}`);
    if (op.op !== "remove") console.log(`  + ${op.path}  ${toShort(op.value)}`);
  }
}

for (let before = Number.MAX_SAFE_INTEGER; path === undefined && before > 1; ) {
  const rows = await listSupersteps(store, { thread, before });
  for (const row of rows)
    if (isSuperstep(row)) await printSuperstep(row.id);
    else console.log(`\n${row.event.type}  ${row.branch}`);
  before = rows.at(-1)?.seq ?? 0;
}
if (path !== undefined)
  for (const { name } of await getBranchTree(store, { thread }))
    for (const { op, superstep, task, call, by } of await blame(store, { thread, branch: name, path }))
      console.log(name, op, `superstep ${superstep.id} of ${superstep.branch}`, superstep.nodes, { task, call, by });
await store.close();
