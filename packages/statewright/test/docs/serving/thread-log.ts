/** Prints a thread as `git log -p` prints a repository; with a JSON Pointer who wrote that value, on every branch. */
import { sqliteStore } from "statewright";
import { blame, getBranchTree, getSuperstep, isSuperstep, listSupersteps } from "statewright/inspect";

const [file = "", thread = "", path] = process.argv.slice(2);
const store = sqliteStore(file, { readOnly: true });

async function printSuperstep(checkpoint: number): Promise<void> {
  const found = await getSuperstep(store, { thread, checkpoint, redact: [] });
  if (found === undefined) return;
  const { id, parent = "none", branch, within = "", at, run, source, nodes, tasks, effectRows, asked } = found;
  console.log(`\nsuperstep ${id}  parent ${parent}  ${branch} ${within}  ${new Date(at).toISOString()}  ${run}`);
  console.log(`    ${nodes.join(" + ") || source}  tasks ${tasks.map((each) => each.id).join(" ")}`);
  for (const { kind, name, key, task, effect, state, attempts, processes = 1, attemptLog = [] } of effectRows) {
    const failures = attemptLog.flatMap(({ error }) => error ?? []).join(", ") || "none";
    const counts = `attempts ${attempts}, processes ${processes}, failures: ${failures}`;
    if (kind !== "task") console.log(`    ${kind} ${name}  ${task} ${key}  ${effect}  ${state}  ${counts}`);
  }
  for (const { key, answer, answeredBy = "unknown" } of asked)
    console.log(`    interrupt ${key}  answered by ${answeredBy}: ${JSON.stringify(answer)}`);
  for (const [index, op] of found.patch.entries()) {
    const { task = tasks.length > 1 ? "several tasks" : source, call, by } = found.authors[index] ?? {};
    if (op.op !== "add") console.log(`  - ${op.path}  ${JSON.stringify(found.before[index])}`);
    if (op.op !== "remove") console.log(`  + ${op.path}  ${JSON.stringify(op.value)}`);
    console.log(`      written by ${[task, call ?? [], by ?? []].flat().join(" ")}`);
  }
}

for (let before = Number.MAX_SAFE_INTEGER; path === undefined && before > 1; ) {
  const rows = await listSupersteps(store, { thread, before });
  for (const row of rows)
    if (isSuperstep(row)) await printSuperstep(row.id);
    else console.log(`\n${row.event.type}  ${row.branch}  ${JSON.stringify(row)}`);
  before = rows.at(-1)?.seq ?? 0;
}
for (const { name } of path === undefined ? [] : await getBranchTree(store, { thread }))
  for (const { op, superstep, task, call, by } of await blame(store, { thread, branch: name, path: path ?? "" }))
    console.log(name, op, `superstep ${superstep.id} of ${superstep.branch}`, superstep.nodes, { task, call, by });
await store.close();
