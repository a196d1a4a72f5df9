/** Pass of model hooks. */
import type { LongTermChange } from "../../long-term/rows.ts";
import type { AgentEnd, FailedAttempt } from "../../model/message.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import type { Write } from "../session/returns.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";

/** Parts of the session that hooks may touch. */
export type HookParts = Pick<Session, "env" | "position" | "progress" | "events" | "journal" | "signals">;

/** A pass of the hooks around a single effect, with everything the hooks have done so far. */
export interface HookPass extends HookParts {
  readonly scope: TaskScope;
  /** Key of the effect. */
  readonly effect: string;
  readonly middleware: readonly Middleware[];
  /** Writes of the task itself, for hooks called after its body. */
  readonly taskWrites: readonly Write[];
  readonly writes: Write[];
  /** Results of auxiliary model calls. */
  readonly auxiliaryAttempts: FailedAttempt[];
  /** Long-term store changes of the hooks; changes after the last hook are ignored. */
  readonly longTerm: LongTermChange[];
  isFinished: boolean;
  /** Ids of the interrupts, and keys of the auxiliary model calls, used in this pass. */
  readonly usedIds: Set<string>;
  /**
   * Interrupts are allowed in phase `before` only. A hook called when the agent has `ended` cannot end the agent
   * again, and a hook called at a `final` end cannot continue the agent.
   */
  phase: "before" | "sent" | "ended" | "final";
  /** Id of the model of the current call. */
  model: string | undefined;
  /** Release functions of ledger reservations without an entry. */
  readonly reservations: Set<() => void>;
  ending: { readonly text: string; readonly ended: AgentEnd } | undefined;
}
