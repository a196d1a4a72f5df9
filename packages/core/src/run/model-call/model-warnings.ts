/** Warnings of a provider about ignored parts of a request, emitted once per run: each turn would repeat them. */

import type { Model } from "../../model/model.ts";
import type { EventEmitter } from "../events/event-emitter.ts";
import { emit } from "../events/event-emitter.ts";
import type { TaskScope } from "../session/scope.ts";

const emittedWarnings: WeakMap<EventEmitter, Set<string>> = new WeakMap();

/** Creates the reporter for warnings of a model. Emits an event and writes a log line. */
export function createWarningReporter(
  events: EventEmitter,
  scope: TaskScope,
  { id: model }: Model,
): (warning: string) => void {
  return (warning) => {
    if (scope.isEnded()) return;
    const emitted = emittedWarnings.get(events) ?? new Set();
    emittedWarnings.set(events, emitted);
    const key = `${model}: ${warning}`;
    if (emitted.has(key)) return;
    emitted.add(key);
    const { node, id: task } = scope.task;
    events.world.log("warn", `the model "${model}" warns: ${warning}`, { node, task });
    emit(events, { type: "model.warned", node, task, model, warning });
  };
}
