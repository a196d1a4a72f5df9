/** Runtime of the hooks of a middleware. */
import type { Channel } from "../../state/channel.ts";
import type { OpenLedger } from "../../tool/policy/ledger.ts";
import type { Middleware, MiddlewareRuntime } from "../../tool/policy/middleware.ts";
import { emitCustomEvent } from "../session/custom-event.ts";
import { getRunIdentity, sleep, type TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { openLedger } from "./ledger.ts";

/** Creates the runtime of a middleware's hooks. `reservations` collects the release callbacks of open reservations. */
export function createHookRuntime(
  session: Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals">,
  scope: TaskScope,
  effect: string,
  {
    middleware,
    reservations,
  }: { readonly middleware: Middleware; readonly reservations?: Set<() => void> | undefined },
): MiddlewareRuntime {
  const { context, world, redactor } = session.env;
  const { state } = session.progress;
  return {
    context,
    state,
    run: getRunIdentity(session.position, scope.task),
    clock: world.clock,
    signal: scope.getSignal(),
    wait: (ms) => sleep(session.signals, session.env.world, ms, scope.getSignal()),
    ledger: ((channel: Channel) =>
      openLedger(session, scope, effect, { middleware, channel, reservations })) as OpenLedger,
    redact: redactor.redact,
    emit: (name, payload) => emitCustomEvent(session, scope.task, name, payload),
  };
}
