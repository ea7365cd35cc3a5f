#!/bin/sh
# Boots systemd as process 1 of namespaces of its own, on a throw-away layer over this machine's files, with nothing but our units.
# To be run by `unshare --mount --pid --net --uts --ipc --cgroup --fork`. Arguments: folder for the layer, Python's prefix,
# site-packages, our sources, settings file. Nothing outside of the namespaces is written to but the (empty) folder.
set -eu
layer=$1 python=$2 packages=$3 sources=$4 settings=$5

mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
root=$layer/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run" -o mode=755

mount -t tmpfs tmpfs "$root/dev" -o mode=755
for device in null zero full random urandom tty; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"

# The units hide /root and /home: what is installed there is shown elsewhere.
mkdir -p "$root/opt/gf/python" "$root/opt/gf/packages" "$root/opt/gf/sources"
mount --bind "$python" "$root/opt/gf/python"
mount --bind "$packages" "$root/opt/gf/packages"
mount --bind "$sources" "$root/opt/gf/sources"
echo /opt/gf/python/lib > "$root/etc/ld.so.conf.d/gf.conf"
chroot "$root" ldconfig
chroot "$root" useradd --system gatewayfilter 2> /dev/null || true
program=$root/usr/local/lib/gatewayfilter
interpreter=$(basename "$(ls "$python"/bin/python3.1? | tail -1)")
chroot "$root" "/opt/gf/python/bin/$interpreter" -m venv --without-pip /usr/local/lib/gatewayfilter
for site in "$program"/lib/python3.*/site-packages; do
    printf '/opt/gf/packages\n/opt/gf/sources\n' > "$site/gf.pth"
done
cat > "$program/bin/gatewayfilter" << 'END'
#!/usr/local/lib/gatewayfilter/bin/python
from gatewayfilter.cli.root import main

if __name__ == "__main__":
    main(prog_name="gatewayfilter")
END
chmod 755 "$program/bin/gatewayfilter"
cp "$settings" "$root/etc/gatewayfilter.toml"

units=$root/etc/systemd/system
rm -rf "${units:?}"/*
cp "$sources"/deploy/systemd/*.service "$units"
# What would reach beyond the namespaces, or is of no use here.
for unit in systemd-sysctl systemd-modules-load systemd-sysusers systemd-remount-fs systemd-update-utmp systemd-random-seed \
    systemd-journal-flush systemd-tmpfiles-setup systemd-udevd systemd-udev-trigger systemd-pstore systemd-binfmt; do
    ln -s /dev/null "$units/$unit.service"
done
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\n' > "$units/box.target"

ip link set lo up
ip link add lan0 type veth peer name far0
ip link set lan0 up
ip address add 192.168.77.1/24 dev lan0

mkdir "$root/old"
cd "$root"
pivot_root . old
umount -l /old
container=unshare exec /lib/systemd/systemd --system --unit=box.target --log-target=journal --show-status=no
