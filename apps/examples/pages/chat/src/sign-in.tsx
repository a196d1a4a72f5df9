import { type FormEvent, type ReactNode, useState } from "react";

/** Form for the token of a user. */
export function SignIn({
  isRefused,
  onSignIn,
}: {
  readonly isRefused: boolean;
  readonly onSignIn: (token: string) => void;
}): ReactNode {
  const [token, setToken] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (token.trim() !== "") onSignIn(token.trim());
  };
  return (
    <main className="sign-in">
      <form onSubmit={submit}>
        <h1>Assistant</h1>
        <label htmlFor="token">Access token</label>
        <input
          id="token"
          type="password"
          autoComplete="off"
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        {isRefused && <p role="alert">This token is not accepted.</p>}
        <button type="submit" className="primary">
          Sign in
        </button>
      </form>
    </main>
  );
}
