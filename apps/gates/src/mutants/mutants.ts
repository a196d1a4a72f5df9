/** Mutants of the engine: each is one faulty change of its source, which the simulator must detect. */

/** Change of a source file. `find` must occur exactly once. */
export interface Mutant {
  readonly name: string;
  /** Path in the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

export const mutants: readonly Mutant[] = [
  // Journal.
  {
    name: "the outcome of a tool call is not recorded",
    file: "packages/core/src/run/journal/journal.ts",
    find: "  recordEffect(saved, {\n    row: ended,",
    replace: '  if (row.kind === "tool") return value;\n  recordEffect(saved, {\n    row: ended,',
  },
  {
    name: "the outcome of a step is not recorded",
    file: "packages/core/src/run/journal/journal.ts",
    find: "  recordEffect(saved, {\n    row: ended,",
    replace: '  if (row.kind === "step") return value;\n  recordEffect(saved, {\n    row: ended,',
  },
  {
    name: "an outcome is recorded without its value",
    file: "packages/core/src/run/session/parts/persistence.ts",
    find: "return [encode === undefined ? row : { ...row, outcome: encode() }];",
    replace: "return [row];",
  },
  {
    name: "a once effect starts before its start is durable",
    file: "packages/core/src/run/journal/journal.ts",
    find: 'if (request.effect !== "once") {',
    replace: "if (request.kind !== undefined) {",
  },
  {
    name: "an idempotency key changes after each resume",
    file: "packages/core/src/run/journal/journal.ts",
    find: "const idempotencyKey = createIdempotencyKey(position, request.task, request.key);",
    replace:
      'const idempotencyKey = createIdempotencyKey(position, request.task, request.key) + "#" + position.run.attempt;',
  },
  {
    name: "a step in doubt is repeated",
    file: "packages/core/src/run/journal/journal.ts",
    find: 'if (request.effect !== "once") return repeatEffect(session, request, row);',
    replace:
      'if (request.effect !== "once" || (request.kind === "step" && request.reconcile === undefined)) return repeatEffect(session, request, row);',
  },
  {
    name: "reconcile is not called",
    file: "packages/core/src/run/journal/journal.ts",
    find: "return reconcile(row.idempotencyKey).then((value) =>",
    replace: "return Promise.resolve<Value | undefined>(undefined).then((value) =>",
  },
  {
    name: "a result is emitted although the commit failed",
    file: "packages/core/src/run/journal/journal.ts",
    find: "if (failure === undefined) request.onCommitted?.(value, false);",
    replace: "if (failure !== null) request.onCommitted?.(value, false);",
  },
  {
    name: "a result is emitted before the commit",
    file: "packages/core/src/run/journal/journal.ts",
    find: "    artifacts: request.getArtifacts?.(),\n    onCommitted: notifyCommitted(request, value),\n  });",
    replace: "    artifacts: request.getArtifacts?.(),\n  });\n  request.onCommitted?.(value, false);",
  },
  // Writes.
  {
    name: "a write is reported before the write is durable",
    file: "packages/core/src/run/session/parts/persistence.ts",
    find: "  return awaitDurable((onCommitted) => writeCommit(saved, parts, onCommitted));\n",
    replace:
      "  return new Promise((resolve, reject) => queueMicrotask(() => resolve(writeCommit(saved, parts, (failure) => (failure === undefined ? resolve() : reject(failure))))));\n",
  },
  {
    name: "the next superstep starts before the previous superstep is durable",
    file: "packages/core/src/run/superstep/commit.ts",
    find: "  await durable;\n",
    replace: "  void Promise.allSettled([durable]);\n",
  },
  {
    name: "a write without an event takes a sequence number",
    file: "packages/core/src/run/session/parts/persistence.ts",
    find: "?? { after: undefined, seq: saved.thread.durableSeq };",
    replace: "?? { after: undefined, seq: saved.thread.nextSeq - 1 };",
  },
  {
    name: "a write is accepted after a failed write",
    file: "packages/core/src/checkpoint/memory/memory-commit.ts",
    find: "  if (thread.seq < (commit.after ?? 0)) throw createGapError(commit);\n",
    replace: "",
  },
  {
    name: "a replaced writer can commit",
    file: "packages/core/src/checkpoint/memory/memory-commit.ts",
    find: "if (thread?.writer === undefined || thread.owner !== self || thread.epoch !== commit.epoch)",
    replace: "if (thread?.writer === undefined)",
  },
  {
    name: "a thread with a live owner can be claimed",
    file: "packages/core/src/checkpoint/memory/memory-store.ts",
    find: "  if (known?.owner?.alive === true) throw createBusyError(request.thread);\n",
    replace: "",
  },
  {
    name: "the journal is cleared when a thread is released",
    file: "packages/core/src/checkpoint/memory/memory-commit.ts",
    find: "  if (commit.release === true) thread.owner = undefined;\n",
    replace:
      "  if (commit.release === true && head !== undefined) foldJournal(namespace, head.step);\n  if (commit.release === true) thread.owner = undefined;\n",
  },
  // Ends of runs.
  {
    name: "a run reports waiting before its interrupts are saved",
    file: "packages/core/src/run/loop/finish.ts",
    find: "  await awaitCommit(saved, { run, interrupts: waiting, timers, events, release: true });\n",
    replace:
      "  event.emit();\n  await awaitCommit(saved, { run, interrupts: waiting, timers, events, release: true });\n",
  },
  {
    name: "a waiting run does not release its thread",
    file: "packages/core/src/run/loop/finish.ts",
    find: "{ run, interrupts: waiting, timers, events, release: true }",
    replace: "{ run, interrupts: waiting, timers, events }",
  },
  {
    name: "the pause of a run is reported as saved although the commit failed",
    file: "packages/core/src/run/loop/finish.ts",
    find: "    else finalEvent.emitUnsaved();\n",
    replace: "    else finalEvent.emit();\n",
  },
  {
    name: "a failure of the store is reported as a durable event of the thread",
    file: "packages/core/src/run/loop/finish.ts",
    find: "    await releaseThread(session, undefined);\n    finalEvent.emitUnsaved();",
    replace: "    await releaseThread(session, undefined);\n    finalEvent.emit();",
  },
  {
    name: "answers to interrupts are not saved",
    file: "packages/core/src/run/session/durable-event.ts",
    find: "{ run: session.position.run, interrupts, timers, events: event.rows }",
    replace: "{ run: session.position.run, timers, events: event.rows }",
  },
  {
    name: "a second answer replaces the first",
    file: "packages/core/src/run/loop/apply-answers.ts",
    find: "  const open = [...saved.interrupts.values()].filter(isOpen);\n  const byId",
    replace: "  const open = [...saved.interrupts.values()];\n  const byId",
  },
  // Opening.
  {
    name: "the journal is not read after a crash",
    file: "packages/core/src/run/task/open-session.ts",
    find: "    rows: new Map(effects.map((row) => [toRowKey(row), row])),\n    interrupts: new Map(",
    replace: "    rows: new Map(effects.slice(0, 0).map((row) => [row.key, row])),\n    interrupts: new Map(",
  },
  {
    name: "interrupts are not read after a crash",
    file: "packages/core/src/run/task/open-session.ts",
    find: "interrupts.filter((row) => row.step === head?.step)",
    replace: "interrupts.filter((row) => row.step < 0)",
  },
  {
    name: "partial joins are lost after a crash",
    file: "packages/core/src/run/task/open-session.ts",
    find: "const control = head === undefined ? emptyControl : deepFreeze(parseControl(codec, head));",
    replace:
      "const control = head === undefined ? emptyControl : ({ ...(codec.decode(head.control) as Control), joins: {} } as Control);",
  },
  {
    name: "deferred tasks are lost after a crash",
    file: "packages/core/src/run/task/open-session.ts",
    find: "const control = head === undefined ? emptyControl : deepFreeze(parseControl(codec, head));",
    replace:
      "const control = head === undefined ? emptyControl : ({ ...(codec.decode(head.control) as Control), deferred: [] } as Control);",
  },
  {
    name: "inputs of fan-out tasks are lost after a crash",
    file: "packages/core/src/run/task/open-session.ts",
    find: "const control = head === undefined ? emptyControl : deepFreeze(parseControl(codec, head));",
    replace:
      "const control = head === undefined ? emptyControl : ({ ...(codec.decode(head.control) as Control), inputs: [0, 0, 0] } as Control);",
  },
  {
    name: "the step budget restarts with each process",
    file: "packages/core/src/run/task/open-session.ts",
    find: "const stepsBefore = open && head?.run === run.id ? (control.steps ?? 0) : 0;",
    replace: "const stepsBefore = 0;",
  },
  {
    name: "the attempt number of a run restarts with each process",
    file: "packages/core/src/run/task/open-session.ts",
    find: "attempt: run.attempt + 1,",
    replace: "attempt: 1,",
  },
  {
    name: "a sequence number of the thread is skipped after a crash",
    file: "packages/core/src/run/task/open-session.ts",
    find: "      nextSeq: claim.nextSeq,\n",
    replace: '      nextSeq: claim.nextSeq + (claim.previousOwner === "dead" ? 1 : 0),\n',
  },
  // Nested graphs.
  {
    name: "the journal of a nested run is not read",
    file: "packages/core/src/run/task/inner-run.ts",
    find: "const effects = head === undefined ? [] : await store.effects(id, namespace, head.step);",
    replace: "const effects = (head === undefined ? [] : await store.effects(id, namespace, head.step)).slice(0, 0);",
  },
  {
    name: "the state of a persistent subgraph is lost",
    file: "packages/core/src/run/task/inner-run.ts",
    find: "const state = Object.freeze(restoreState(channels, codec, rows));",
    replace:
      'const state = Object.freeze(persistence === "per-thread" ? createInitialState(channels) : restoreState(channels, codec, rows));',
  },
  {
    name: "a nested run restarts after a crash",
    file: "packages/core/src/run/task/inner-run.ts",
    find: "if (session.progress.control.caller?.task === call.id) {",
    replace: "if (session.progress.control.caller?.task === call.id && session.position.run.attempt === 1) {",
  },
  {
    name: "pending writes of a nested run are not flushed before the thread is released",
    file: "packages/core/src/run/task/inner-run.ts",
    find: "if (saved !== undefined && saved.pending.size > 0) await awaitCommit(saved, {});",
    replace: "if (saved !== undefined && saved.pending.size > 1000) await awaitCommit(saved, {});",
  },
  // Tasks.
  {
    name: "the recorded result of a task with siblings is not reused",
    file: "packages/core/src/run/loop/run-supersteps.ts",
    find: 'if (known?.kind === "task" && known.state === "ok" && known.outcome !== undefined) {',
    replace: 'if (known?.kind === "task" && known.state === "error" && known.outcome !== undefined) {',
  },
  {
    name: "the result of a task with siblings is not recorded",
    file: "packages/core/src/run/loop/run-supersteps.ts",
    find: '  if (result.kind === "done")\n    journalTask(session.position, saved, task, { world: session.env.world, outcome: result.outcome, startedAt });\n',
    replace: "",
  },
  {
    name: "task results are reduced in the order of their ends",
    file: "packages/core/src/run/session/concurrency.ts",
    find: "  if (items.length <= batchSize) return Promise.all(items.map(work));\n",
    replace:
      "  const ended: Result[] = [];\n  await Promise.all(items.map(async (item, index) => ended.push(await work(item, index))));\n  if (ended.length > 0) return ended;\n",
  },
  {
    name: "a join fires repeatedly",
    file: "packages/core/src/run/superstep/superstep.ts",
    find: "    delete arrived[target];\n",
    replace: "",
  },
  {
    name: "a started once node runs again",
    file: "packages/core/src/run/journal/decide-effect.ts",
    find: "return isInFlight(row) || (row.kind",
    replace: 'return (row.kind !== "task" && isInFlight(row)) || (row.kind',
  },
  {
    name: 'the answer "not happened" for the first start also counts for the second start',
    file: "packages/core/src/run/task/once.ts",
    find: "const response = consultAboutTask(scope, doubt, {",
    replace:
      'const response = consultAboutTask(scope, doubt.prior ? doubt : { ...doubt, about: "", row: { ...doubt.row, attempts: 1 } }, {',
  },
  {
    name: "an answer counts for an interrupt about another start",
    file: "packages/core/src/run/task/attempt.ts",
    find: "const known = stored !== undefined && isSameInterrupt(stored, row) ? stored : undefined;",
    replace: "const known = stored;",
  },
  {
    name: "an interrupt is identified by its position only",
    file: "packages/core/src/run/loop/node-runtime.ts",
    find: "if (row.payload === payload) return id;",
    replace: "return id;",
  },
  // Tool calls.
  {
    name: "a call in doubt fails the run without an interrupt",
    file: "packages/core/src/run/tool-call/call-in-doubt.ts",
    find: 'if (known === undefined || !isInFlight(known) || known.effect !== "once") return undefined;',
    replace: "if (known !== null) return undefined;",
  },
  {
    name: "a call aborted by the store gets a result",
    file: "packages/core/src/run/tool-call/execute-call.ts",
    find: '      if (isSuspension(reason) && (error.kind === "cancelled" || canRetry)) throw reason;\n',
    replace: "",
  },
  {
    name: "tool results arrive in another order",
    file: "packages/core/src/run/tool-call/tool-node.ts",
    find: "const answers = results.map((result) => toToolMessage(scope, result));",
    replace: "const answers = results.toReversed().map((result) => toToolMessage(scope, result));",
  },
];
