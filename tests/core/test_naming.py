"""Names that wrap makes out of commands."""

from __future__ import annotations

from typing import List, Set

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronguard.core.names import check_job_name
from cronguard.core.naming import Nameless, names_for


def names(*commands: str, schedule: str = "0 2 * * *") -> List[str]:
    return names_for([Nameless(command, schedule, command.encode("utf-8", "replace")) for command in commands], {})


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/srv/bin/backup.sh --full > /dev/null", "backup"),
        ("cd / && run-parts --report /etc/cron.hourly", "cron.hourly"),
        ("test -x /usr/sbin/anacron || { cd / && run-parts --report /etc/cron.daily; }", "cron.daily"),
        ("[ -x /usr/lib/php/sessionclean ] && /usr/lib/php/sessionclean", "sessionclean"),
        ("command -v debian-sa1 > /dev/null && debian-sa1 1 1", "debian-sa1"),
        ("nice -n 19 ionice -c2 -n7 /usr/local/bin/rsnapshot daily", "rsnapshot"),
        ("A=b sudo -u app env X=1 timeout -k 5 10m /srv/import.py", "import"),
        ("flock -w 10 /var/lock/x -c 'cd /srv && ./mirror --now'", "mirror"),
        ("/bin/bash -lc 'cd /srv && bundle exec rake billing:run'", "rake-billing-run"),
        ("python3 -m reports.daily", "reports.daily"),
        ("python3 -c 'import time; time.sleep(9)' && certbot renew -q", "certbot-renew"),
        ("perl -e 'sleep 5' && x", "x"),
        ("/usr/bin/php7.4 -f /var/www/nextcloud/cron.php", "nextcloud-cron"),
        ("php artisan schedule:run", "artisan-schedule-run"),
        ("java -jar /srv/etl.jar --all", "etl"),
        ("curl -fsS https://u:pw@example.com/jobs/export.php?token=s3cr3t", "export"),
        ("cd /srv/app/current && ./bin/export --day x", "export"),  # not the word of the shell
        ("wget -q https://example.com/cron.php?key=s3cr3t", "example.com-cron"),
        ("for i in 1 2; do /srv/try $i; done", "try"),
        ("PGPASSWORD=x psql -c 'vacuum'", "psql"),
        ("/srv/größe/sichern.sh", "sichern"),
        ("ä", "job"),
        ("", "job"),
        ("$(date)", "date"),
    ],
)
def test_command_names_its_job(command: str, name: str) -> None:
    assert names(command) == [name]


def test_arguments_tell_lines_of_one_program_apart() -> None:
    assert names("b.sh --dir /srv daily", "b.sh --dir /srv weekly") == ["b-daily", "b-weekly"]
    assert names("b.sh", "b.sh --full") == ["b", "b-full"]


def test_time_tells_lines_of_one_command_apart_else_a_number() -> None:
    jobs = [Nameless("b", "30 2 * * *", b"1"), Nameless("b", "5 14 * * 1", b"2"), Nameless("b", "*/5 * * * *", b"3")]
    assert names_for(jobs, {}) == ["b-0230", "b-1405-1", "b"]
    assert names("b", "b") == ["b-1", "b-2"]


def test_order_of_lines_does_not_matter() -> None:
    commands = ["b.sh daily", "c", "b.sh weekly", "b.sh", "/x/c --fast"]
    forward = dict(zip(commands, names(*commands)))
    backward = dict(zip(commands[::-1], names(*commands[::-1])))
    assert forward == backward


def test_no_secret_gets_into_a_name() -> None:
    found = names("x --password hunter2 a", "x --password hunter3 b", "x --token=hunter4 c", "curl https://h/?hunter5")
    assert "hunter" not in " ".join(found)


USUAL = ("/a/b.sh x", "a.sh y", "sudo a", "sh -c 'a'", "a", "cron", "-", "a b c d e f g")
TEXT = st.text(max_size=40) | st.sampled_from(USUAL)


@given(st.lists(TEXT, max_size=12), st.sets(st.sampled_from(["a", "b", "a-x", "job", "job-1"])))
def test_any_commands_get_good_names_that_differ(commands: List[str], taken: Set[str]) -> None:
    jobs = [Nameless(command, "* * * * *", b"%d" % at) for at, command in enumerate(commands)]
    found = names_for(jobs, dict.fromkeys(taken))
    assert len(set(found)) == len(commands)
    assert not set(found) & taken
    assert [check_job_name(name) for name in found] == [None] * len(found)
