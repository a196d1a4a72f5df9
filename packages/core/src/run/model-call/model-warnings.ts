/** Warnings of a provider about ignored parts of a request, emitted once per run: each turn would repeat them. */
import type { Model } from "../../model/model.ts";
import type { TaskScope } from "../session/scope.ts";
import { emit, type Session } from "../session/session.ts";

const emittedWarnings: WeakMap<Session, Set<string>> = new WeakMap();

/** Creates the reporter for warnings of a model. Emits an event and writes a log line. */
export function createWarningReporter(
  session: Session,
  scope: TaskScope,
  { id: model }: Model,
): (warning: string) => void {
  return (warning) => {
    if (scope.isEnded()) return;
    const emitted = emittedWarnings.get(session) ?? new Set();
    emittedWarnings.set(session, emitted);
    const key = `${model}: ${warning}`;
    if (emitted.has(key)) return;
    emitted.add(key);
    const { node, id: task } = scope.task;
    session.world.log("warn", `the model "${model}" warns: ${warning}`, { node, task });
    emit(session, { type: "model.warned", node, task, model, warning });
  };
}
