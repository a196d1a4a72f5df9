/** What a provider did not heed of a request, told once in a run: every turn would say it again. */
import type { Model } from "../../model/model.ts";
import type { TaskScope } from "../session/scope.ts";
import { emit, type Session } from "../session/session.ts";

const told: WeakMap<Session, Set<string>> = new WeakMap();

/** Where a model tells what it did not heed: as an event and in the log. */
export function modelWarnings(session: Session, scope: TaskScope, { id: model }: Model): (warning: string) => void {
  return (warning) => {
    if (scope.ended()) return;
    const known = told.get(session) ?? new Set();
    told.set(session, known);
    const said = `${model}: ${warning}`;
    if (known.has(said)) return;
    known.add(said);
    const { node, id: task } = scope.task;
    session.world.log("warn", `the model "${model}" warns: ${warning}`, { node, task });
    emit(session, { type: "model.warned", node, task, model, warning });
  };
}
