import { type DynamicToolUIPart, getToolName, type ToolUIPart } from "ai";
import { type ReactNode, useState } from "react";

export interface ToolCardProps {
  readonly part: ToolUIPart | DynamicToolUIPart;
  /** Undefined for a call that waits no longer: a later message has ended its run. */
  readonly onApprove: ((approval: { id: string; approved: boolean; reason?: string }) => void) | undefined;
}

const stateTexts = {
  "input-streaming": "Preparing",
  "input-available": "Running",
  "approval-requested": "Needs your approval",
  "approval-responded": "Answered",
  "output-available": "Done",
  "output-error": "Failed",
  "output-denied": "Denied",
} as const;

/** Tool call with its arguments, its state, and the question that it waits for. */
export function ToolCard({ part, onApprove }: ToolCardProps): ReactNode {
  const { state } = part;
  const isOver = state === "approval-requested" && onApprove === undefined;
  return (
    <section className={`tool ${isOver ? "over" : state}`} aria-label={`Tool ${getToolName(part)}`}>
      <header>
        <span className="tool-name">{getToolName(part)}</span>
        <span className="tool-state">{isOver ? "Not answered" : stateTexts[state]}</span>
      </header>
      <Arguments input={part.input} />
      {state === "approval-requested" && onApprove !== undefined && (
        <Approval id={part.approval.id} reason={part.approval.requestReason} onApprove={onApprove} />
      )}
      {state === "output-available" && <p className="tool-output">{formatValue(part.output)}</p>}
      {state === "output-error" && <p className="tool-output">{part.errorText}</p>}
      {state === "output-denied" && part.approval.reason !== undefined && (
        <p className="tool-output">{part.approval.reason}</p>
      )}
    </section>
  );
}

function Arguments({ input }: { readonly input: unknown }): ReactNode {
  if (typeof input !== "object" || input === null) return null;
  return (
    <dl>
      {Object.entries(input).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{formatValue(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function Approval({
  id,
  reason,
  onApprove,
}: {
  readonly id: string;
  readonly reason: string | undefined;
  readonly onApprove: NonNullable<ToolCardProps["onApprove"]>;
}): ReactNode {
  const [why, setWhy] = useState("");
  return (
    <div className="approval">
      {reason !== undefined && <p className="note">{reason}</p>}
      <input
        aria-label="Reason of a denial"
        placeholder="Reason, if you deny"
        value={why}
        onChange={(event) => setWhy(event.target.value)}
      />
      <div className="row">
        <button type="button" className="primary" onClick={() => onApprove({ id, approved: true })}>
          Approve
        </button>
        <button
          type="button"
          onClick={() => onApprove({ id, approved: false, ...(why.trim() === "" ? {} : { reason: why.trim() }) })}
        >
          Deny
        </button>
      </div>
    </div>
  );
}

function formatValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
