import { Client } from "@langchain/langgraph-sdk";
import { type ReactNode, useCallback, useMemo, useState } from "react";
import { SignIn } from "../../chat/src/sign-in.tsx";
import { ThemeSwitch } from "../../chat/src/theme-switch.tsx";
import { Chat, type State } from "./chat.tsx";
import { getStatus } from "./errors.ts";
import { getText } from "./message-view.tsx";

const tokenKey = "use-stream-page-token";

/** Whole page: sign in, then a chat beside the list of chats. */
export function App(): ReactNode {
  const [token, setToken] = useState(() => sessionStorage.getItem(tokenKey) ?? "");
  const [isRefused, setIsRefused] = useState(false);
  const signIn = (next: string): void => {
    sessionStorage.setItem(tokenKey, next);
    setIsRefused(false);
    setToken(next);
  };
  const signOut = useCallback((refused: boolean): void => {
    sessionStorage.removeItem(tokenKey);
    setIsRefused(refused);
    setToken("");
  }, []);
  if (token === "") return <SignIn isRefused={isRefused} onSignIn={signIn} />;
  return <Desk key={token} token={token} onSignOut={signOut} />;
}

interface DeskProps {
  readonly token: string;
  readonly onSignOut: (refused: boolean) => void;
}

interface Entry {
  readonly id: string;
  readonly title: string;
  readonly isWaiting: boolean;
}

async function listChats(client: Client<State>): Promise<readonly Entry[]> {
  const threads = await client.threads.search({ limit: 50 });
  return threads.map(({ thread_id, status, values }) => {
    const first = values?.messages?.find(({ type }) => type === "human");
    return { id: thread_id, title: first ? getText(first) : "New chat", isWaiting: status === "interrupted" };
  });
}

function Desk({ token, onSignOut }: DeskProps): ReactNode {
  const [thread, setThread] = useState(() => new URLSearchParams(window.location.search).get("thread"));
  const [chats, setChats] = useState<readonly Entry[]>([]);
  const [opened, setOpened] = useState(0);
  const [notice, setNotice] = useState<string>();
  const client = useMemo(
    () => new Client<State>({ apiUrl: `${window.location.origin}/langgraph`, apiKey: token }),
    [token],
  );
  const refreshChats = useCallback((): void => {
    listChats(client).then(setChats, (error: unknown) => {
      if (getStatus(error) === 401) return onSignOut(true);
      // The list is no more than help: the chat shows the failure of the server.
      console.warn("the list of chats is not up to date", error);
    });
  }, [client, onSignOut]);

  const showThread = (id: string | null): void => {
    window.history.replaceState(null, "", id === null ? window.location.pathname : `?thread=${id}`);
    setThread(id);
    setNotice(undefined);
  };
  const goTo = (id: string | null): void => {
    showThread(id);
    setOpened(opened + 1);
  };
  return (
    <div className="desk">
      <header className="bar">
        <h1>Assistant</h1>
        <div className="bar-actions">
          <button type="button" onClick={() => goTo(null)}>
            New chat
          </button>
          <ThemeSwitch />
          <button type="button" onClick={() => onSignOut(false)}>
            Sign out
          </button>
        </div>
      </header>
      <nav className="chats" aria-label="Chats">
        {chats.map(({ id, title, isWaiting }) => (
          <button
            key={id}
            type="button"
            className="chat-entry"
            aria-current={id === thread ? "page" : undefined}
            onClick={() => goTo(id)}
          >
            <span className="chat-title">{title}</span>
            {isWaiting && <span className="badge">waits</span>}
          </button>
        ))}
      </nav>
      <Chat
        key={opened}
        {...{ thread, token, notice, onSignOut }}
        onNew={() => goTo(null)}
        onThread={showThread}
        onSettled={refreshChats}
        onReconnect={() => setOpened(opened + 1)}
        onConflict={() => {
          setNotice("Another window has changed this chat.");
          setOpened(opened + 1);
        }}
      />
    </div>
  );
}
