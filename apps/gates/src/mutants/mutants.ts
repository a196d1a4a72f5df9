/** Faults planted into the engine, one at a time. Each is a change of its source that the simulator must notice. */

/** A change of a file of core: `find` stands there exactly once. */
export interface Mutant {
  readonly name: string;
  /** Below packages/core/src. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export const mutants: readonly Mutant[] = [
  // The journal.
  {
    name: "the outcome of a tool call is not recorded",
    file: "run/journal/journal.ts",
    find: "  record(session, saved, {\n    row: ended,",
    replace: '  if (row.kind === "tool") return value;\n  record(session, saved, {\n    row: ended,',
  },
  {
    name: "the outcome of a step is not recorded",
    file: "run/journal/journal.ts",
    find: "  record(session, saved, {\n    row: ended,",
    replace: '  if (row.kind === "step") return value;\n  record(session, saved, {\n    row: ended,',
  },
  {
    name: "an outcome is recorded without its value",
    file: "run/session/session.ts",
    find: "return [encode === undefined ? row : { ...row, outcome: encode() }];",
    replace: "return [row];",
  },
  {
    name: "a once effect begins before its start is durable",
    file: "run/journal/journal.ts",
    find: 'if (request.effect !== "once") {',
    replace: "if (request.kind !== undefined) {",
  },
  {
    name: "an idempotency key is another after each resume",
    file: "run/journal/journal.ts",
    find: "const idempotencyKey = idempotencyKeyOf(session, request.task, request.key);",
    replace: 'const idempotencyKey = idempotencyKeyOf(session, request.task, request.key) + "#" + session.run.attempt;',
  },
  {
    name: "a step in doubt is repeated",
    file: "run/journal/journal.ts",
    find: "    if (request.reconcile === undefined) throw inDoubt(session, request, row);\n",
    replace: "",
  },
  {
    name: "reconcile is not asked",
    file: "run/journal/journal.ts",
    find: "const happened = await request.reconcile?.(row.idempotencyKey);",
    replace: "const happened = await Promise.resolve<Value | undefined>(undefined);",
  },
  {
    name: "a result is told though it could not be saved",
    file: "run/journal/journal.ts",
    find: "    artifacts: request.artifacts?.(),\n    told: (failure) => {\n      if (failure === undefined) request.settled?.(value, false);",
    replace:
      "    artifacts: request.artifacts?.(),\n    told: (failure) => {\n      if (failure !== null) request.settled?.(value, false);",
  },
  {
    name: "a result is told before it is saved",
    file: "run/journal/journal.ts",
    find: "    artifacts: request.artifacts?.(),\n    told: (failure) => {\n      if (failure === undefined) request.settled?.(value, false);\n    },\n  });\n  return value;",
    replace:
      "    artifacts: request.artifacts?.(),\n    told: undefined,\n  });\n  request.settled?.(value, false);\n  return value;",
  },
  // Writes.
  {
    name: "a write is told before it is durable",
    file: "run/session/session.ts",
    find: "    write(session, saved, parts, (failure) => (failure === undefined ? resolve() : reject(failure))),\n",
    replace:
      "    queueMicrotask(() => resolve(write(session, saved, parts, (failure) => (failure === undefined ? resolve() : reject(failure))))),\n",
  },
  {
    name: "the next superstep begins before the last one is durable",
    file: "run/superstep/commit.ts",
    find: "  await durable;\n",
    replace: "  void Promise.allSettled([durable]);\n",
  },
  {
    name: "a write that tells nothing takes a number",
    file: "run/session/session.ts",
    find: "?? { after: undefined, seq: saved.thread.durableSeq };",
    replace: "?? { after: undefined, seq: saved.thread.nextSeq - 1 };",
  },
  {
    name: "a write may follow one that failed",
    file: "checkpoint/memory/memory-store.ts",
    find: "  if (thread.seq < (commit.after ?? 0)) throw leavesGap(commit);\n",
    replace: "",
  },
  {
    name: "a writer that was replaced may write",
    file: "checkpoint/memory/memory-store.ts",
    find: "if (thread === undefined || thread.owner !== self || thread.epoch !== commit.epoch) throw fenced(commit);",
    replace: "if (thread === undefined) throw fenced(commit);",
  },
  {
    name: "a thread with a living owner is given away",
    file: "checkpoint/memory/memory-store.ts",
    find: "  if (known?.owner?.alive === true) throw busy(request.thread);\n",
    replace: "",
  },
  {
    name: "the journal is cleared when a thread is let go",
    file: "checkpoint/memory/memory-store.ts",
    find: "  if (commit.release === true) thread.owner = undefined;\n",
    replace:
      "  if (commit.release === true && head !== undefined) fold(line, head.step);\n  if (commit.release === true) thread.owner = undefined;\n",
  },
  // Ends.
  {
    name: "a run says that it waits before its questions are saved",
    file: "run/loop/finish.ts",
    find: "  await written(session, saved, { run, interrupts: waiting, timers, events, release: true });\n",
    replace:
      "  fact.tell();\n  await written(session, saved, { run, interrupts: waiting, timers, events, release: true });\n",
  },
  {
    name: "a run that waits keeps its thread",
    file: "run/loop/finish.ts",
    find: "{ run, interrupts: waiting, timers, events, release: true }",
    replace: "{ run, interrupts: waiting, timers, events }",
  },
  {
    name: "the pause of a run is told as saved though it is not",
    file: "run/loop/finish.ts",
    find: "    else fact.tellUnsaved();\n",
    replace: "    else fact.tell();\n",
  },
  {
    name: "a failure of the store is told as a fact of the thread",
    file: "run/loop/finish.ts",
    find: "    await letGo(session, undefined);\n    fact.tellUnsaved();",
    replace: "    await letGo(session, undefined);\n    fact.tell();",
  },
  {
    name: "the answers of people are not saved",
    file: "run/loop/loop.ts",
    find: "{ run: session.run, interrupts: answered, timers, events: fact.rows }",
    replace: "{ run: session.run, timers, events: fact.rows }",
  },
  {
    name: "a second answer replaces the first",
    file: "resume/resume.ts",
    find: "  const open = [...saved.interrupts.values()].filter(isOpen);\n  const byId",
    replace: "  const open = [...saved.interrupts.values()];\n  const byId",
  },
  // Opening.
  {
    name: "the journal is not read after a crash",
    file: "run/task/open.ts",
    find: "    journal: new Map(effects.map((row) => [journalKey(row.step, row.task, row.key), row])),\n    interrupts: new Map(",
    replace: "    journal: new Map(effects.slice(0, 0).map((row) => [row.key, row])),\n    interrupts: new Map(",
  },
  {
    name: "questions are not read after a crash",
    file: "run/task/open.ts",
    find: "interrupts.filter((row) => row.step === head?.step)",
    replace: "interrupts.filter((row) => row.step < 0)",
  },
  {
    name: "half full joins are forgotten",
    file: "run/task/open.ts",
    find: "const control = head === undefined ? emptyControl : deepFreeze(controlOf(codec, head));",
    replace:
      "const control = head === undefined ? emptyControl : ({ ...(codec.decode(head.control) as Control), joins: {} } as Control);",
  },
  {
    name: "deferred tasks that wait are forgotten",
    file: "run/task/open.ts",
    find: "const control = head === undefined ? emptyControl : deepFreeze(controlOf(codec, head));",
    replace:
      "const control = head === undefined ? emptyControl : ({ ...(codec.decode(head.control) as Control), held: [] } as Control);",
  },
  {
    name: "the inputs of sent tasks are forgotten",
    file: "run/task/open.ts",
    find: "const control = head === undefined ? emptyControl : deepFreeze(controlOf(codec, head));",
    replace:
      "const control = head === undefined ? emptyControl : ({ ...(codec.decode(head.control) as Control), inputs: [0, 0, 0] } as Control);",
  },
  {
    name: "the step budget begins anew with each process",
    file: "run/task/open.ts",
    find: "stepsBefore: open && head?.run === run.id ? (control.steps ?? 0) : 0,",
    replace: "stepsBefore: 0,",
  },
  {
    name: "attempts of a run begin anew with each process",
    file: "run/task/open.ts",
    find: "attempt: run.attempt + 1,",
    replace: "attempt: 1,",
  },
  {
    name: "a number of the thread is left out after a crash",
    file: "run/task/open.ts",
    find: "      nextSeq: claim.nextSeq,\n",
    replace: "      nextSeq: claim.nextSeq + (claim.recovered ? 1 : 0),\n",
  },
  // Inner graphs.
  {
    name: "the journal of an inner graph is not read",
    file: "run/task/inner-run.ts",
    find: "const effects = head === undefined ? [] : await store.effects(id, line, head.step);",
    replace: "const effects = (head === undefined ? [] : await store.effects(id, line, head.step)).slice(0, 0);",
  },
  {
    name: "the state of a kept inner graph is lost",
    file: "run/task/inner-run.ts",
    find: "const state = Object.freeze(restoreState(channels, codec, rows));",
    replace:
      'const state = Object.freeze(persistence === "kept" ? initialState(channels) : restoreState(channels, codec, rows));',
  },
  {
    name: "a call of an inner graph begins anew after a crash",
    file: "run/task/inner-run.ts",
    find: "if (session.control.caller?.task === call.id) {",
    replace: "if (session.control.caller?.task === call.id && session.run.attempt === 1) {",
  },
  {
    name: "what an inner graph has done is not written before the thread is let go",
    file: "run/task/inner-run.ts",
    find: "if (saved !== undefined && saved.pending.size > 0) await written(session, saved, {});",
    replace: "if (saved !== undefined && saved.pending.size > 1000) await written(session, saved, {});",
  },
  // Tasks.
  {
    name: "the result of a task with siblings is not handed back",
    file: "run/loop/supersteps.ts",
    find: 'if (known?.kind === "task" && known.state === "ok" && known.outcome !== undefined) {',
    replace: 'if (known?.kind === "task" && known.state === "error" && known.outcome !== undefined) {',
  },
  {
    name: "the result of a task with siblings is not recorded",
    file: "run/loop/supersteps.ts",
    find: '  if (result.kind === "done") journalTask(session, saved, task, result.outcome, startedAt);\n',
    replace: "",
  },
  {
    name: "results fold in the order in which they end",
    file: "run/session/concurrency.ts",
    find: "  if (items.length <= batch) return Promise.all(items.map(work));\n",
    replace:
      "  const ended: Result[] = [];\n  await Promise.all(items.map(async (item, index) => ended.push(await work(item, index))));\n  if (ended.length > 0) return ended;\n",
  },
  {
    name: "a join fires again and again",
    file: "run/superstep/superstep.ts",
    find: "    delete arrived[target];\n",
    replace: "",
  },
  {
    name: "a once node that was under way runs again",
    file: "run/task/once.ts",
    find: 'if (row !== undefined && (row.state === "error" || inFlight(row))) {',
    replace: 'if (row !== undefined && row.state === "error") {',
  },
  {
    name: "that the first start did not happen counts for the second",
    file: "run/task/once.ts",
    find: "ask(scope, row.attempts, about, doubt(",
    replace: 'ask(scope, 1, "", doubt(',
  },
  {
    name: "an answer counts for a question about another start",
    file: "run/task/attempt.ts",
    find: "const known = asked !== undefined && isSameQuestion(asked, row) ? asked : undefined;",
    replace: "const known = asked;",
  },
  {
    name: "a question is known by its place",
    file: "run/task/node-runtime.ts",
    find: "if (row.payload === payload) return id;",
    replace: "return id;",
  },
  // Tool calls.
  {
    name: "a call in doubt fails the run instead of asking",
    file: "run/tool-call/tool-call.ts",
    find: 'if (known === undefined || !inFlight(known) || known.effect !== "once") return undefined;',
    replace: "if (known !== null) return undefined;",
  },
  {
    name: "a call that the store cut short is answered",
    file: "run/tool-call/execute-call.ts",
    find: '      if (isForResume(reason) && (error.kind === "cancelled" || mayTryAgain)) throw reason;\n',
    replace: "",
  },
  {
    name: "a call that the store kept from beginning is answered",
    file: "run/tool-call/prepare-call.ts",
    find: "  if (aborted && isForResume(reason)) throw reason;\n",
    replace: "",
  },
  {
    name: "answers to calls come in another order",
    file: "run/tool-call/tool-node.ts",
    find: "const answers = results.map((result) => answerMessage(scope, result));",
    replace: "const answers = results.toReversed().map((result) => answerMessage(scope, result));",
  },
];
