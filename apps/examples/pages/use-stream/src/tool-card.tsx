import { type ReactNode, useState } from "react";
import type { ActionRequest, Decision } from "./approvals.ts";

export interface ToolCardProps {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly output: { readonly text: string; readonly isError: boolean } | undefined;
  /** True while the run may still execute the call. */
  readonly isRunning: boolean;
  readonly request: ActionRequest | undefined;
  /** Decision that waits for those about the other calls. */
  readonly decision: Decision | undefined;
  readonly onDecide: (decision: Decision) => void;
}

/** Tool call with its arguments, its state, and the decision that it waits for. */
export function ToolCard(props: ToolCardProps): ReactNode {
  const { name, args, output, request, decision, onDecide } = props;
  const { text, style } = getState(props);
  return (
    <section className={`tool ${style}`} aria-label={`Tool ${name}`}>
      <header>
        <span className="tool-name">{name}</span>
        <span className="tool-state">{text}</span>
      </header>
      <dl>
        {Object.entries(args).map(([key, value]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{typeof value === "string" ? value : JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
      {request !== undefined && decision === undefined && <Approval request={request} onDecide={onDecide} />}
      {output !== undefined && <p className="tool-output">{output.text}</p>}
    </section>
  );
}

/** Text and style class of the state of a call. */
function getState({ output, request, decision, isRunning }: ToolCardProps): { text: string; style: string } {
  if (output?.isError === true) return { text: "Not done", style: "output-error" };
  if (output !== undefined) return { text: "Done", style: "output-available" };
  if (decision !== undefined) return { text: decision.type === "approve" ? "Approved" : "Denied", style: "" };
  if (request !== undefined) return { text: "Needs your approval", style: "approval-requested" };
  return isRunning ? { text: "Running", style: "" } : { text: "Not answered", style: "over" };
}

interface ApprovalProps {
  readonly request: ActionRequest;
  readonly onDecide: (decision: Decision) => void;
}

function Approval({ request, onDecide }: ApprovalProps): ReactNode {
  const [why, setWhy] = useState("");
  const message = why.trim();
  return (
    <div className="approval">
      {request.description !== undefined && <p className="note">{request.description}</p>}
      <input
        aria-label="Reason of a denial"
        placeholder="Reason, if you deny"
        value={why}
        onChange={(event) => setWhy(event.target.value)}
      />
      <div className="row">
        <button type="button" className="primary" onClick={() => onDecide({ type: "approve" })}>
          Approve
        </button>
        <button
          type="button"
          onClick={() => onDecide(message === "" ? { type: "reject" } : { type: "reject", message })}
        >
          Deny
        </button>
      </div>
    </div>
  );
}
