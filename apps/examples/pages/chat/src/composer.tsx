import { type FormEvent, type KeyboardEvent, type ReactNode, useState } from "react";

export interface ComposerProps {
  readonly isAtWork: boolean;
  /** True while the server cannot be reached. */
  readonly isLost: boolean;
  readonly isStopping: boolean;
  readonly hint: string | undefined;
  readonly onSend: (text: string) => void;
  readonly onStop: () => void;
}

/** Field for a message, with a button that sends it or stops the run. */
export function Composer({ isAtWork, isLost, isStopping, hint, onSend, onStop }: ComposerProps): ReactNode {
  const [text, setText] = useState("");
  const send = (): void => {
    if (text.trim() === "" || isAtWork || isLost) return;
    onSend(text.trim());
    setText("");
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    send();
  };
  const sendOnEnter = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <form className="composer" onSubmit={submit}>
      {hint !== undefined && <p className="hint">{hint}</p>}
      <div className="composer-row">
        <textarea
          aria-label="Message"
          placeholder="Write a message"
          rows={Math.min(6, text.split("\n").length)}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={sendOnEnter}
        />
        {isAtWork ? (
          <button type="button" className="stop" disabled={isStopping} onClick={onStop}>
            {isStopping ? "Stopping…" : "Stop"}
          </button>
        ) : (
          <button type="submit" className="primary" disabled={text.trim() === "" || isLost}>
            Send
          </button>
        )}
      </div>
    </form>
  );
}
